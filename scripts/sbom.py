"""Prints a software bill of materials of a release, as CycloneDX 1.6 in JSON.

usage: sbom.py VERSION BINARY CHECKOUTS

Components are the Swift packages of Deploy/versions.json, with the license found in CHECKOUTS, the Swift
toolchain, the Debian packages whose libraries BINARY loads, and as optional PostgreSQL's client library,
which the program loads itself when it is to use PostgreSQL. The same inputs print the same bytes.
"""

import json
import pathlib
import re
import subprocess
import sys
import uuid

LICENSES = [
    ("Apache-2.0", "Apache License"),
    ("MIT", "MIT License"),
    ("MIT", "Permission is hereby granted, free of charge"),
]


def license_of(folder):
    for file in sorted(folder.glob("LICENSE*")):
        text = file.read_text(errors="replace")
        for name, words in LICENSES:
            if words in text:
                return name
    return None


def swift_packages(checkouts):
    root = pathlib.Path(__file__).resolve().parent.parent
    for pin in json.loads((root / "Deploy/versions.json").read_text())["pins"]:
        url = pin["location"].removesuffix(".git")
        path = url.removeprefix("https://")
        version = pin["state"]["version"]
        component = {
            "type": "library",
            "bom-ref": f"pkg:swift/{path}@{version}",
            "name": pin["identity"],
            "version": version,
            "purl": f"pkg:swift/{path}@{version}",
            "externalReferences": [{"type": "vcs", "url": url}],
            "properties": [{"name": "vcs:revision", "value": pin["state"]["revision"]}],
        }
        license = license_of(checkouts / path.rsplit("/", 1)[1])
        if license:
            component["licenses"] = [{"license": {"id": license}}]
        yield component


def toolchain():
    text = subprocess.run(["swift", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"Swift version (\S+)", text).group(1)
    return {
        "type": "library",
        "bom-ref": f"pkg:generic/swift@{version}",
        "name": "swift",
        "version": version,
        "purl": f"pkg:generic/swift@{version}",
        "description": "standard library, Dispatch and Foundation of the toolchain, linked in",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }


def loaded_libraries(binary):
    """Names of the libraries that the binary itself asks for."""
    text = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
    return sorted(re.findall(r"\(NEEDED\).*\[(.+)\]", text))


def debian_package(package, scope, description):
    """The component of an installed package; its version is the one that the binary was built beside."""
    version, architecture = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version} ${Architecture}", package],
        capture_output=True, text=True, check=True,
    ).stdout.split()
    purl = f"pkg:deb/debian/{package}@{version}?arch={architecture}"
    return {
        "type": "library",
        "scope": scope,
        "bom-ref": purl,
        "name": package,
        "version": version,
        "purl": purl,
        "description": description,
    }


def debian_packages(binary):
    found = {}
    resolved = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    paths = dict(re.findall(r"^\s*(\S+) => (/\S+)", resolved, re.M))
    for name in loaded_libraries(binary):
        path = paths.get(name)
        if path is None or "/swift/" in path:
            continue
        owner = None
        for candidate in (path, str(pathlib.Path(path).resolve()), path.removeprefix("/usr")):
            answer = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True)
            if answer.returncode == 0:
                owner = answer.stdout.split(":")[0]
                break
        if owner is None:
            sys.exit(f"sbom: no Debian package has {path}")
        found[owner] = found.get(owner, []) + [name]
    for package, libraries in sorted(found.items()):
        yield debian_package(package, "required", "from the system: " + ", ".join(libraries))


def main(version, binary, checkouts):
    # The program loads libpq itself when it is to use PostgreSQL.
    optional = debian_package("libpq5", "optional", "from the system, for PostgreSQL: libpq.so.5")
    components = [
        *swift_packages(pathlib.Path(checkouts)), toolchain(), *debian_packages(binary), optional,
    ]
    product = f"pkg:generic/watershed@{version}"
    inputs = json.dumps([product, components], sort_keys=True)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, inputs)),
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": product,
                "name": "watershed",
                "version": version,
                "purl": product,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": product, "dependsOn": [c["bom-ref"] for c in components]}],
    }
    json.dump(document, sys.stdout, indent=2, sort_keys=True)
    print()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
