"""Writes a container image as an OCI layout in a tar, without a daemon and without a base image.

usage: image.py VERSION BINARY OUTPUT SECONDS-SINCE-1970

The image holds BINARY, the Debian packages whose libraries it loads, the certificates and the time zones,
and nothing else: no shell, no package manager. The packages are downloaded with apt, which checks their
signatures. The tar can be read by `podman load`, `docker load`, `skopeo copy oci-archive:` and `umoci`.
The same inputs write the same bytes.
"""

import gzip
import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

USER = 10001
# Needed at run time and loaded by no linker: certificates of authorities, time zones, the name of the system.
# PostgreSQL's client library, which the program loads itself when it is asked to use PostgreSQL.
LOADED_LIBRARIES = ["libpq.so.5"]
DATA_PACKAGES = ["base-files", "ca-certificates", "tzdata"]
# Of these packages the image takes these files alone.
PARTS = {"base-files": ["etc/os-release", "usr/lib/os-release", "etc/debian_version"]}
LEFT_OUT = ("usr/share/doc/", "usr/share/man/", "usr/share/lintian/", "usr/share/bug/")


def run(*arguments, **options):
    return subprocess.run(arguments, check=True, capture_output=True, text=True, **options).stdout


def loaded_libraries():
    """Paths of the libraries that the program loads itself."""
    known = dict(re.findall(r"^\s*(\S+) \(.*\) => (/\S+)", run("/sbin/ldconfig", "-p"), re.M))
    for name in LOADED_LIBRARIES:
        if name not in known:
            sys.exit(f"image: {name} is not on this machine: apt-get install libpq5")
        yield known[name]


def library_packages(binary):
    """Names of the packages of all libraries that the binary loads, those of its libraries included."""
    packages = set()
    files = [binary, *loaded_libraries()]
    paths = {path for file in files for path in re.findall(r"(?:=> )?(/\S+) \(0x", run("ldd", file))}
    for path in sorted(paths | set(files[1:])):
        for candidate in (path, str(pathlib.Path(path).resolve()), path.removeprefix("/usr")):
            found = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True)
            if found.returncode == 0:
                packages.add(found.stdout.split(":")[0])
                break
        else:
            sys.exit(f"image: no Debian package has {path}")
    return packages


def download(packages, folder):
    # apt's own user may not write here; the message about that is no error.
    run("apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", *sorted(packages), cwd=folder)
    return sorted(pathlib.Path(folder).glob("*.deb"))


class Layer:
    """The files of one layer, by path."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.members = {}

    def add(self, path, data=None, *, mode=0o644, kind=tarfile.REGTYPE, link="", owner=0):
        path = path.strip("/")
        for parent in reversed(pathlib.PurePosixPath(path).parents[:-1]):
            if str(parent) not in self.members:
                self.add(str(parent), mode=0o755, kind=tarfile.DIRTYPE)
        member = tarfile.TarInfo(path)
        member.type, member.mode, member.linkname = kind, mode, link
        member.uid = member.gid = owner
        member.mtime = self.seconds
        member.size = len(data or b"")
        self.members[path] = (member, data)

    def add_package(self, deb):
        """Adds the files of a package, and what scanners for vulnerabilities read of it."""
        name = run("dpkg-deb", "-f", str(deb), "Package").strip()
        content = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(deb)], check=True, capture_output=True)
        with tarfile.open(fileobj=io.BytesIO(content.stdout)) as archive:
            for member in archive:
                path = member.name.removeprefix("./").strip("/")
                is_license = path.endswith("/copyright")
                if not path or path.startswith(LEFT_OUT) and not is_license:
                    continue
                if name in PARTS and path not in PARTS[name]:
                    continue
                if member.isdir():
                    if path not in self.members:
                        self.add(path, mode=member.mode, kind=tarfile.DIRTYPE)
                elif member.issym():
                    self.add(path, mode=0o777, kind=tarfile.SYMTYPE, link=member.linkname)
                elif member.islnk():
                    source, data = self.members[member.linkname.removeprefix("./")]
                    self.add(path, data, mode=source.mode)
                else:
                    self.add(path, archive.extractfile(member).read(), mode=member.mode)
        self.add(f"var/lib/dpkg/status.d/{name}", run("dpkg-deb", "-f", str(deb)).encode())

    def tar(self):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for _, (member, data) in sorted(self.members.items()):
                archive.addfile(member, io.BytesIO(data) if data is not None else None)
        return buffer.getvalue()


def system_layer(binary, seconds):
    layer = Layer(seconds)
    with tempfile.TemporaryDirectory() as folder:
        for deb in download(library_packages(binary) | set(DATA_PACKAGES), folder):
            layer.add_package(deb)
    certificates = [
        data for path, (_, data) in sorted(layer.members.items())
        if path.startswith("usr/share/ca-certificates/") and data
    ]
    if not certificates:
        sys.exit("image: ca-certificates has no certificates")
    joined = b"".join(data if data.endswith(b"\n") else data + b"\n" for data in certificates)
    layer.add("etc/ssl/certs/ca-certificates.crt", joined)
    layer.add("etc/passwd", f"root:x:0:0::/root:/nonexistent\nwatershed:x:{USER}:{USER}::/data:/nonexistent\n".encode())
    layer.add("etc/group", f"root:x:0:\nwatershed:x:{USER}:\n".encode())
    layer.add("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    # Engines put their own in its place; the health check asks localhost.
    layer.add("etc/hosts", b"127.0.0.1 localhost\n::1 localhost\n")
    for folder in ("proc", "sys", "dev"):
        layer.add(folder, mode=0o755, kind=tarfile.DIRTYPE)
    layer.add("tmp", mode=0o1777, kind=tarfile.DIRTYPE)
    # A volume that is empty takes owner and mode from here.
    layer.add("data", mode=0o700, kind=tarfile.DIRTYPE, owner=USER)
    return layer.tar()


def program_layer(binary, seconds):
    layer = Layer(seconds)
    layer.add("usr/local/bin/watershed", pathlib.Path(binary).read_bytes(), mode=0o755)
    return layer.tar()


def configuration(version, architecture, created, layers):
    return {
        "architecture": architecture,
        "os": "linux",
        "created": created,
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["/usr/local/bin/watershed"],
            "Cmd": ["serve"],
            "Env": [
                "PATH=/usr/local/bin",
                "HOME=/data",
                "WATERSHED_BANNER=brief",
                "WATERSHED_DATA=/data",
                "WATERSHED_ENVIRONMENT=production",
                "WATERSHED_HOST=0.0.0.0",
                "WATERSHED_LOG_FORMAT=json",
                "WATERSHED_LOG_LEVEL=info",
            ],
            "ExposedPorts": {"8080/tcp": {}},
            "Volumes": {"/data": {}},
            "WorkingDir": "/data",
            "StopSignal": "SIGTERM",
            # Docker and Podman run it; the OCI specification has no field for it.
            "Healthcheck": {
                "Test": ["CMD", "/usr/local/bin/watershed", "doctor", "--only-server"],
                "Interval": 30_000_000_000,
                "Timeout": 10_000_000_000,
                "StartPeriod": 20_000_000_000,
            },
            "Labels": {
                "org.opencontainers.image.title": "watershed",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(l).hexdigest() for l in layers]},
        "history": [
            {"created": created, "created_by": "Debian packages"},
            {"created": created, "created_by": "watershed " + version},
        ],
    }


def main(version, binary, output, seconds):
    seconds = int(seconds)
    created = run("date", "-u", "-d", f"@{seconds}", "+%Y-%m-%dT%H:%M:%SZ").strip()
    architecture = run("dpkg", "--print-architecture").strip()
    layers = [system_layer(binary, seconds), program_layer(binary, seconds)]
    blobs = {}

    def blob(data, kind):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": kind, "digest": "sha256:" + digest, "size": len(data)}

    def encoded(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    prefix = "application/vnd.oci.image."
    config = blob(encoded(configuration(version, architecture, created, layers)), prefix + "config.v1+json")
    packed = [blob(gzip.compress(l, 9, mtime=0), prefix + "layer.v1.tar+gzip") for l in layers]
    manifest = blob(
        encoded({"schemaVersion": 2, "mediaType": prefix + "manifest.v1+json", "config": config, "layers": packed}),
        prefix + "manifest.v1+json",
    )
    name = f"localhost/watershed:{version}"
    manifest["platform"] = {"architecture": architecture, "os": "linux"}
    manifest["annotations"] = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": version,
    }

    def path(description):
        return "blobs/sha256/" + description["digest"].removeprefix("sha256:")

    archive = Layer(seconds)
    archive.add("oci-layout", encoded({"imageLayoutVersion": "1.0.0"}))
    archive.add("index.json", encoded({"schemaVersion": 2, "mediaType": prefix + "index.v1+json", "manifests": [manifest]}))
    # For versions of Docker that read no OCI layout.
    legacy = {"Config": path(config), "RepoTags": [name], "Layers": [path(layer) for layer in packed]}
    archive.add("manifest.json", encoded([legacy]))
    for digest, data in blobs.items():
        archive.add("blobs/sha256/" + digest, data)
    pathlib.Path(output).write_bytes(archive.tar())


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
