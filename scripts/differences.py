"""Prints Differences.md from the doc comments of a module's sources.

usage: differences.py TITLE SOURCES...

A paragraph of a doc comment that begins with "Differs from TITLE:" is a difference of the
declaration below it.
"""

import os
import re
import sys

DECLARATION = re.compile(
    r"\b(?:class func|static func|class var|static let|static var|func|var|let|init|subscript|class"
    r"|struct|enum|protocol|typealias|case|extension)\b"
)
MODIFIERS = re.compile(
    r"^(?:@\w+(?:\([^)]*\))?\s+|(?:public|open|package|final|override|required|convenience|static|class"
    r"|mutating|nonisolated(?:\([^)]*\))?|unowned(?:\([^)]*\))?|weak|lazy|indirect)"
    r"\s+(?=\w))+"
)
SCOPE = re.compile(r"\b(?:class|struct|enum|protocol|extension)\s+([A-Z][\w.]*)")


def name_of(declaration):
    """The declaration as Swift names it: `fetch(_:)`, `mergePolicy`, `NSFetchRequest`."""
    text = MODIFIERS.sub("", declaration.strip())
    function = re.match(r"(?:func\s+)?(init|subscript|[\w]+)\??(?:<[^(]*>)?\((.*)", text)
    if text.startswith(("func ", "init", "subscript")) and function:
        labels = re.findall(r"(?:^\s*|[,(]\s*)(\w+)(?:\s+\w+)?\s*:", strip_nested(function.group(2)))
        return f"{function.group(1)}({''.join(label + ':' for label in labels)})"
    plain = re.match(r"(?:\w+\s+)?([\w.]+)", text)
    return plain.group(1) if plain else text


def strip_nested(text):
    """A parameter list without what stands in brackets of any kind."""
    depth, kept = 0, []
    for character in text:
        if character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
            if depth < 0:
                break
        elif depth == 0:
            kept.append(character)
    return "".join(kept)


def paragraphs(comment):
    """The paragraphs of a doc comment, each on one line."""
    found, current = [], []
    for line in comment:
        if line:
            current.append(line)
        elif current:
            found.append(" ".join(current))
            current = []
    return found + ([" ".join(current)] if current else [])


def differences(path, mark):
    """Yields (type, declaration, text) for each difference in a file."""
    comment, scopes = [], []
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for number, line in enumerate(lines):
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if stripped.startswith("///"):
            comment.append(stripped[3:].strip())
            continue
        if stripped.startswith("@") and not DECLARATION.search(stripped):
            continue
        while scopes and stripped and indent <= scopes[-1][0]:
            scopes.pop()
        if comment and DECLARATION.search(stripped):
            declaration = " ".join(part.strip() for part in lines[number : number + 12])
            for paragraph in paragraphs(comment):
                bare = paragraph.replace("**", "")
                if bare.startswith(mark):
                    owner = scopes[-1][1] if scopes else ""
                    yield owner, name_of(declaration), bare[len(mark) :].strip()
        comment = []
        scope = SCOPE.search(stripped)
        if scope and stripped.endswith("{") and not stripped.startswith("//"):
            scopes.append((indent, scope.group(1)))


def main(title, *modules):
    mark = f"Differs from {title}:"
    print(f"# Differences from {title}\n")
    print("Written by `make differences` from the documentation of each symbol; do not edit.\n")
    for sources in modules:
        print_module(sources, mark, named=sources != modules[0])


def print_module(sources, mark, named):
    module = os.path.basename(sources)
    for folder in sorted(os.listdir(sources)):
        found = []
        for root, _, files in os.walk(os.path.join(sources, folder)):
            for file in sorted(files):
                if file.endswith(".swift"):
                    found += differences(os.path.join(root, file), mark)
        if not found:
            continue
        print(f"## {module}: {folder}\n" if named else f"## {folder}\n")
        for owner, name, text in sorted(found):
            symbol = f"{owner}.{name}" if owner and owner != name else name
            print(f"- `{symbol}`: {text[0].upper()}{text[1:]}")
        print()


if __name__ == "__main__":
    main(sys.argv[1], *sys.argv[2:])
