"""Writes the man pages of the command line, one for each command, as mdoc.

usage: manual.py BINARY FOLDER YYYY-MM-DD

The pages are made of what `BINARY --experimental-dump-help` says, which is what `--help` prints.
"""

import datetime
import json
import pathlib
import re
import subprocess
import sys


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    # A line that begins with a dot or an apostrophe would be a request of the formatter.
    return re.sub(r"(?m)^([.'])", r"\\&\1", re.sub(r"\n+", "\n", text.strip()))


def paragraphs(text):
    return "\n.Pp\n".join(escaped(part) for part in text.split("\n\n"))


def spelling(argument):
    names = [("--" if n["kind"] == "long" else "-") + n["name"] for n in argument.get("names", [])]
    value = argument.get("valueName", "")
    if argument["kind"] == "positional":
        return escaped(f"<{value}>")
    suffix = "" if argument["kind"] == "flag" else f" <{value}>"
    return escaped(", ".join(names) + suffix)


def page(command, path, date):
    name = "-".join(path)
    lines = [f".Dd {date}", f".Dt {name.upper()} 1", ".Os Watershed", ".Sh NAME", f".Nm {escaped(name)}"]
    lines.append(f".Nd {escaped(command.get('abstract', ''))}")
    shown = [a for a in command.get("arguments", []) if a.get("shouldDisplay", True)]
    children = [c for c in command.get("subcommands", []) if c.get("shouldDisplay", True) and c["commandName"] != "help"]
    lines += [".Sh SYNOPSIS", f".Nm {escaped(' '.join(path))}"]
    if children:
        lines.append(".Ar subcommand")
    if any(a["kind"] != "positional" for a in shown):
        lines.append(".Op Ar options")
    lines += [f".Ar {escaped(a.get('valueName', ''))}" for a in shown if a["kind"] == "positional"]
    if command.get("discussion"):
        lines += [".Sh DESCRIPTION", paragraphs(command["discussion"])]
    if shown:
        lines += [".Sh OPTIONS", ".Bl -tag -width Ds"]
        for argument in shown:
            lines.append(f".It {spelling(argument)}")
            words = [argument.get("abstract", ""), argument.get("discussion", "")]
            lines += [escaped(word) for word in words if word]
            if argument.get("allValues"):
                lines.append(escaped("One of: " + ", ".join(argument["allValues"]) + "."))
        lines.append(".El")
    if children:
        lines += [".Sh SUBCOMMANDS", ".Bl -tag -width Ds"]
        for child in children:
            lines += [f".It Xr {escaped(name + '-' + child['commandName'])} 1", escaped(child.get("abstract", ""))]
        lines.append(".El")
    if len(path) > 1:
        lines += [".Sh SEE ALSO", f".Xr {escaped('-'.join(path[:-1]))} 1"]
    return name, "\n".join(lines) + "\n", children


def write(command, path, folder, date):
    name, text, children = page(command, path, date)
    (folder / f"{name}.1").write_text(text)
    for child in children:
        write(child, [*path, child["commandName"]], folder, date)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    binary, folder, date = sys.argv[1:]
    dump = subprocess.run([binary, "--experimental-dump-help"], capture_output=True, text=True, check=True)
    day = datetime.date.fromisoformat(date)
    shown = f"{day:%B} {day.day}, {day.year}"
    target = pathlib.Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    command = json.loads(dump.stdout)["command"]
    write(command, [command["commandName"]], target, shown)
