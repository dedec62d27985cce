"""Prints Coverage.md from the API lists and the symbol graphs of our modules.

usage: coverage.py LISTS GRAPHS

A row of a list is there when a module has a symbol of the same type and spelling. Of n overloads of
one spelling at most as many count as we have. Symbols that cannot exist on Linux and deprecated ones
are left out of the count. A type that we name by a typealias, since keyed archives can't name nested
classes outside Apple's platforms, has the members of the type it stands for; a class that takes a
member from a protocol of ours, since Swift refuses it in the class itself, has that member.
"""

import collections
import csv
import glob
import json
import os
import sys

MODULES = {
    "Core Data": ("coredata.tsv", ["OpenCoreData", "CloudKitMirroring"]),
    "CloudKit": ("cloudkit.tsv", ["OpenCloudKit", "CloudKitMirroring"]),
}

# Why an area is not counted or thin, for the reader of the page.
NOTES = {
    "spotlight": "needs Core Spotlight",
    "ubiquity": "iCloud documents: deprecated by Apple",
}

TYPE_KINDS = {"class", "struct", "enum", "protocol", "typealias", "associatedtype"}


def symbols(graphs, modules):
    """Counts our public symbols by (type, member)."""
    have, seen, aliases = collections.Counter(), set(), {}
    names, conformances = {}, set()
    for module in modules:
        paths = glob.glob(os.path.join(graphs, f"{module}.symbols.json"))
        paths += glob.glob(os.path.join(graphs, f"{module}@*.symbols.json"))
        for path in sorted(paths):
            with open(path, encoding="utf-8") as file:
                graph = json.load(file)
                for relation in graph["relationships"]:
                    if relation["kind"] == "conformsTo":
                        conformances.add((relation["source"], relation["target"]))
                for symbol in graph["symbols"]:
                    precise = symbol["identifier"]["precise"]
                    parts = symbol["pathComponents"]
                    key = (precise, tuple(parts))
                    if key in seen or "::SYNTHESIZED::" in precise:
                        continue
                    seen.add(key)
                    kind = symbol["kind"]["identifier"].removeprefix("swift.")
                    if kind in TYPE_KINDS:
                        names[precise] = ".".join(parts)
                        name = (".".join(parts), "(type)")
                    elif len(parts) == 1:
                        name = ("(global)", parts[0])
                    else:
                        name = (".".join(parts[:-1]), parts[-1])
                    if name[0] == "Notification.Name":
                        name = ("NSNotification.Name", name[1])
                    have[name] += 1
                    if kind == "typealias" and len(parts) > 1:
                        # The declaration's last fragment is the type it stands for.
                        target = symbol["declarationFragments"][-1]["spelling"]
                        aliases[target] = ".".join(parts)
    taken = {(names.get(source), names.get(target)) for source, target in conformances}
    for source, target in sorted(pair for pair in taken if all(pair)):
        for (owner, member), count in list(have.items()):
            if owner == target and member != "(type)":
                have.setdefault((source, member), count)
    for (owner, member), count in list(have.items()):
        # An alias of a nested type may be a member of an aliased one.
        if owner in aliases and member != "(type)":
            have[(aliases[owner], member)] += count
        head, _, rest = owner.partition(".")
        if head in aliases and rest:
            have[(f"{aliases[head]}.{rest}", member)] += count
    return have


def compare(path, have):
    """Yields (area, type, member, present) for each row that counts."""
    left = have.copy()
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["portable"] != "yes" or row["deprecated"] != "no":
                continue
            key = (row["type"], row["member"])
            present = left[key] > 0
            left[key] -= present
            yield row["area"], row["type"], row["member"], present


def print_endpoints():
    """Of CloudKit's web services; a test sends something to each."""
    with open(os.path.join(os.path.dirname(__file__), "endpoints.tsv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    print("\n## CloudKit web services\n\n| endpoint | | |\n|---|---|---|")
    for row in rows:
        answer = "answered" if row["answered"] == "yes" else "`NOT_FOUND`"
        print(f"| `{row['path']}` | {answer} | {row['note']} |")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    lists, graphs = sys.argv[1:]
    print("# API coverage\n")
    print("Written by `make coverage`; do not edit. A name counts when our module has it, by type and")
    print("spelling; what cannot exist on Linux and what Apple has deprecated is not counted. Names say")
    print("nothing about behaviour: that is what the tests are for.")
    for title, (name, modules) in MODULES.items():
        total, got = collections.Counter(), collections.Counter()
        missing = collections.defaultdict(list)
        for area, owner, member, present in compare(os.path.join(lists, name), symbols(graphs, modules)):
            total[area] += 1
            got[area] += present
            if not present:
                missing[owner].append(member)
        print(f"\n## {title}\n\n| area | here | of | |\n|---|---:|---:|---|")
        for area in total:
            share = f"{100 * got[area] / total[area]:.0f} %"
            note = NOTES.get(area)
            print(f"| {area} | {got[area]} | {total[area]} | {share}{', ' + note if note else ''} |")
        print(f"| **all** | **{sum(got.values())}** | **{sum(total.values())}** |"
              f" **{100 * sum(got.values()) / max(sum(total.values()), 1):.0f} %** |")
        absent = sorted(owner for owner, members in missing.items() if "(type)" in members)
        partial = sorted(owner for owner in missing if owner not in absent)
        if absent:
            print(f"\nTypes that are absent: {', '.join(f'`{owner}`' for owner in absent)}.")
        if partial:
            print("\n<details><summary>Members that are absent</summary>\n")
            for owner in partial:
                print(f"- `{owner}`: {', '.join(f'`{member}`' for member in missing[owner])}")
            print("\n</details>")
    print_endpoints()


main()
