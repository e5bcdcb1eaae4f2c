"""Tables and figures of the papers, measured again."""
