"""Unpacks a container image into a folder, and checks its digests.

usage: unpack-image.py IMAGE.oci.tar FOLDER CONFIGURATION

CONFIGURATION is written: the image's configuration in JSON.
"""

import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile


def main(image, folder, configuration):
    with tarfile.open(image) as archive:
        def read(description):
            digest = description["digest"].removeprefix("sha256:")
            data = archive.extractfile("blobs/sha256/" + digest).read()
            if hashlib.sha256(data).hexdigest() != digest or len(data) != description["size"]:
                sys.exit(f"unpack-image: {digest} is not what it says")
            return data

        if json.load(archive.extractfile("oci-layout"))["imageLayoutVersion"] != "1.0.0":
            sys.exit("unpack-image: another version of the layout")
        index = json.load(archive.extractfile("index.json"))
        manifest = json.loads(read(index["manifests"][0]))
        config = json.loads(read(manifest["config"]))
        for layer, diff in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
            data = gzip.decompress(read(layer))
            if "sha256:" + hashlib.sha256(data).hexdigest() != diff:
                sys.exit(f"unpack-image: {diff} is not what it says")
            with tarfile.open(fileobj=io.BytesIO(data)) as members:
                members.extractall(folder, numeric_owner=True)
        pathlib.Path(configuration).write_text(json.dumps(config))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
