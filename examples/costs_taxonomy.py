"""Train with the costs of a taxonomy, and see whether mistakes are then less bad.

    python examples/costs_taxonomy.py [--splits 10] [--across 2] [--generate]

The 150 intents of CLINC150 belong to ten domains (as in ``data/domains.json`` of
github.com/clinc/oos-eval). A mistake within a domain costs 1, one across
domains `--across`. Plain training and training with these costs (``cost_matrix``) are compared on
ten splits: each choose C by the mean cost on a validation part and are tested on another; the test
parts are disjoint. A paired bootstrap over the splits says how certain the difference is. Without
the data set, or with --generate, it runs on generated groups of classes.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import StratifiedKFold

from polymargin import LinearMulticlassSVC
from polymargin.costs import from_taxonomy, mean_cost

DOMAINS = {
    "banking": "account_blocked balance bill_balance bill_due freeze_account interest_rate "
    "min_payment order_checks pay_bill pin_change report_fraud routing spending_history "
    "transactions transfer",
    "credit_cards": "application_status apr card_declined credit_limit credit_limit_change "
    "credit_score damaged_card expiration_date improve_credit_score international_fees new_card "
    "redeem_rewards replacement_card_duration report_lost_card rewards_balance",
    "kitchen_and_dining": "accept_reservations calories cancel_reservation confirm_reservation "
    "cook_time food_last how_busy ingredient_substitution ingredients_list meal_suggestion "
    "nutrition_info recipe restaurant_reservation restaurant_reviews restaurant_suggestion",
    "home": "calendar calendar_update next_song order order_status play_music reminder "
    "reminder_update shopping_list shopping_list_update smart_home todo_list todo_list_update "
    "update_playlist what_song",
    "auto_and_commute": "current_location directions distance gas gas_type jump_start "
    "last_maintenance mpg oil_change_how oil_change_when schedule_maintenance tire_change "
    "tire_pressure traffic uber",
    "travel": "book_flight book_hotel car_rental carry_on exchange_rate flight_status "
    "international_visa lost_luggage plug_type timezone translate travel_alert "
    "travel_notification travel_suggestion vaccines",
    "utility": "alarm calculator date definition find_phone flip_coin make_call "
    "measurement_conversion roll_dice share_location spelling text time timer weather",
    "work": "direct_deposit income insurance insurance_change meeting_schedule next_holiday payday "
    "pto_balance pto_request pto_request_status pto_used rollover_401k schedule_meeting taxes w2",
    "small_talk": "are_you_a_bot do_you_have_pets fun_fact goodbye greeting how_old_are_you "
    "meaning_of_life tell_joke thank_you what_are_your_hobbies what_can_i_ask_you "
    "what_is_your_name where_are_you_from who_do_you_work_for who_made_you",
    "meta": "cancel change_accent change_ai_name change_language change_speed change_user_name "
    "change_volume maybe no repeat reset_settings sync_device user_name whisper_mode yes",
}
CS = (0.1, 0.3, 1.0, 3.0, 10.0)


class Tested(NamedTuple):
    """One way of training on one split, with the C that validation chose."""

    C: float
    cost: float
    accuracy: float
    within: float  # the part of the errors that stays within a group


def parents_of(domains: dict[str, str]) -> dict[str, str]:
    """The taxonomy: the domain of every intent."""
    return {intent: domain for domain, intents in domains.items() for intent in intents.split()}


def clinc150() -> tuple[sparse.csr_array, np.ndarray] | None:
    """Counts of words and names of intents, all parts together; None where they are absent."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("POLYMARGIN_DATA", beside))
    if not (folder / "clinc150.npz").is_file():
        return None
    names = np.array(json.loads((folder / "clinc150.labels.json").read_text()))
    with np.load(folder / "clinc150.npz") as file:
        parts = [
            sparse.csr_array(
                (file[f"{part}_data"], file[f"{part}_indices"], file[f"{part}_indptr"]),
                shape=tuple(file[f"{part}_shape"]),
            )
            for part in ("train", "test")
        ]
        codes = np.concatenate([file["train_y"], file["test_y"]])
    return sparse.csr_array(sparse.vstack(parts)), names[codes]


def generated(seed: int = 0) -> tuple[sparse.csr_array, np.ndarray, dict[str, str]]:
    """Counts of words: some of the class, some of its group, some of everybody."""
    rng = np.random.default_rng(seed)
    domains = {f"group{g}": " ".join(f"g{g}c{c}" for c in range(5)) for g in range(4)}
    parents = parents_of(domains)
    groups, names = list(domains), np.array(list(parents))
    y = names[np.arange(1500) % len(names)]
    X = np.zeros((len(y), 300), np.float32)
    for row, name in enumerate(y):
        own, group = 3 * int(np.flatnonzero(names == name)[0]), groups.index(parents[name])
        words = [own + rng.integers(0, 9, 2), 80 + 20 * group + rng.integers(0, 30, 2)]
        np.add.at(X[row], np.concatenate([*words, rng.integers(0, 300, 4)]), 1.0)
    return sparse.csr_array(X), y, domains


def compare(
    X: sparse.csr_array, y: np.ndarray, parents: dict[str, str], across: float, n_splits: int
) -> tuple[list[Tested], list[Tested]]:
    """Plain training and training with costs, on every split."""
    pairs = from_taxonomy(parents, np.unique(y), normalize=False)
    costs = {pair: across if cost > 1 else 1.0 for pair, cost in pairs.items()}
    scale = float(np.mean(list(costs.values())))
    margins = {pair: cost / scale for pair, cost in costs.items()}  # C keeps its meaning
    folds = [
        test for _, test in StratifiedKFold(n_splits, shuffle=True, random_state=0).split(X, y)
    ]
    found: tuple[list[Tested], list[Tested]] = ([], [])
    for number, test in enumerate(folds):
        held = folds[(number + 1) % n_splits]
        train = np.setdiff1d(np.arange(len(y)), np.concatenate([test, held]))
        weigh = TfidfTransformer().fit(X[train])
        rows = {
            name: (weigh.transform(X[part]), y[part])
            for name, part in (("train", train), ("held", held), ("test", test))
        }
        for kept, given in zip(found, (None, margins), strict=True):
            kept.append(_train_and_test(rows, given, costs, parents))
        print(f"split {number + 1}: plain {found[0][-1].cost:.4f}, costs {found[1][-1].cost:.4f}")
    return found


def _train_and_test(rows: dict, margins: dict | None, costs: dict, parents: dict) -> Tested:
    models = [
        LinearMulticlassSVC(C=C, cost_matrix=margins, random_state=0).fit(*rows["train"])
        for C in CS
    ]
    spent = [mean_cost(rows["held"][1], model.predict(rows["held"][0]), costs) for model in models]
    best = models[int(np.argmin(spent))]
    y, predicted = rows["test"][1], best.predict(rows["test"][0])
    wrong = y != predicted
    same = [parents[a] == parents[b] for a, b in zip(y[wrong], predicted[wrong], strict=True)]
    within = float(np.mean(same)) if same else 1.0
    return Tested(best.C, mean_cost(y, predicted, costs), 1 - float(wrong.mean()), within)


def main(arguments: list[str] | None = None) -> tuple[float, float, float]:
    """Compare; returns the mean difference of the costs and its 95 % interval."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--across", type=float, default=2.0, help="cost of a wrong domain")
    parser.add_argument("--generate", action="store_true", help="do not look for the data set")
    given = parser.parse_args(arguments)
    data = None if given.generate else clinc150()
    if data is None:
        print("generated groups of classes")
        X, y, domains = generated()
    else:
        (X, y), domains = data, DOMAINS
    parents = parents_of(domains)
    plain, costly = compare(X, y, parents, given.across, given.splits)
    for name, runs in (("plain", plain), ("costs", costly)):
        cost, accuracy, within = np.mean([run[1:] for run in runs], axis=0)
        chosen = ", ".join(f"{run.C:g}" for run in runs)
        print(
            f"{name}: mean cost {cost:.4f}, accuracy {100 * accuracy:.2f} %, errors within the "
            f"group {100 * within:.1f} %; C {chosen}"
        )
    change = np.array([b.cost - a.cost for a, b in zip(plain, costly, strict=True)])
    draws = np.random.default_rng(0).choice(change, (10_000, len(change))).mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    print(
        f"change of the mean cost by training with costs: {change.mean():+.4f}, 95 % interval "
        f"{low:+.4f} to {high:+.4f} ({np.count_nonzero(change < 0)} of {len(change)} lower)"
    )
    return float(change.mean()), float(low), float(high)


if __name__ == "__main__":
    main()
