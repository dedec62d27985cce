#!/usr/bin/env python3
"""Watershed beside Kinto, each as a server process on a PostgreSQL of its own.

    Benchmarks/kinto.py path/to/watershed [--batches 20] [--venv FOLDER]

Ten clients create records in batches, 200 each; then one client asks again and again for what
changed while one record has. Kinto comes from PyPI into a virtual environment; PostgreSQL is
Debian's. Rates are by the clock and by the processor time of the server with its PostgreSQL; the
latter is what a busy machine can compare.
"""

import argparse, base64, glob, http.client, json, os, pathlib, shutil, signal, socket
import subprocess, sys, tempfile, threading, time, urllib.parse

CLIENTS, SIZE = 10, 200
RUN_AS = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def fields(seed):
    return {f"field{i}": f"{seed:016x}{i:016x}" for i in range(8)}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PostgreSQL:
    def __init__(self, folder):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.folder, self.port = folder, free_port()
        folder.mkdir()
        user = RUN_AS if os.geteuid() == 0 else []
        if user:
            shutil.chown(folder, "postgres")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        subprocess.run(
            [*user, f"{programs}/initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust",
             "-E", "UTF8"],
            check=True, env={**os.environ, "LC_ALL": "C"}, **quiet)
        self.process = subprocess.Popen(
            [*user, f"{programs}/postgres", "-D", folder / "data", "-p", str(self.port),
             "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}",
             "-c", "max_connections=200"], **quiet)
        wait_for(lambda: socket.create_connection(("127.0.0.1", self.port), 1).close())
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def wait_for(attempt):
    deadline = time.monotonic() + 60
    while True:
        try:
            return attempt()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def processor_seconds(roots):
    """Of all processes below some, with their children that have ended."""
    parents, ticks = {}, {}
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            words = pathlib.Path(stat).read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(stat.split("/")[2])
        parents[process], ticks[process] = int(words[1]), sum(map(int, words[11:15]))
    total = 0
    for process in ticks:
        ancestor = process
        while ancestor and ancestor not in roots:
            ancestor = parents.get(ancestor, 0)
        total += ticks[process] if ancestor else 0
    return total / os.sysconf("SC_CLK_TCK")


class Kinto:
    def __init__(self, folder, database, venv):
        if not (venv / "bin" / "kinto").exists():
            subprocess.run([sys.executable, "-m", "venv", venv], check=True)
            subprocess.run(
                [venv / "bin" / "pip", "install", "-q", "kinto[postgresql]"], check=True)
        self.port = free_port()
        settings = folder / "kinto.ini"
        backends = "".join(
            f"kinto.{name}_backend = kinto.core.{name}.postgresql\n"
            f"kinto.{name}_url = {database.url}\n" for name in ["storage", "permission", "cache"])
        settings.write_text(
            "[server:main]\nuse = egg:waitress#main\nhost = 127.0.0.1\n"
            f"port = {self.port}\nthreads = {CLIENTS}\n[app:main]\nuse = egg:kinto\n"
            f"{backends}kinto.batch_max_requests = {SIZE}\n"
            "multiauth.policies = basicauth\n"
            "multiauth.policy.basicauth.use = "
            "kinto.core.authentication.BasicAuthAuthenticationPolicy\n"
            "kinto.userid_hmac_secret = benchmark\n")
        program = venv / "bin" / "kinto"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([program, "migrate", "--ini", settings], check=True, **quiet)
        self.process = subprocess.Popen([program, "start", "--ini", settings], **quiet)
        wait_for(lambda: socket.create_connection(("127.0.0.1", self.port), 1).close())
        token = base64.b64encode(b"person:secret").decode()
        self.headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}
        call = self.caller()
        call("PUT", "/v1/buckets/bench", {})
        for client in range(CLIENTS):
            call("PUT", f"/v1/buckets/bench/collections/notes{client}", {})

    def caller(self):
        return caller(self.port, self.headers)

    def batch(self, client, number):
        path = f"/v1/buckets/bench/collections/notes{client}/records"
        requests = [{"body": {"data": fields(number << 16 | index)}} for index in range(SIZE)]
        return "POST", "/v1/batch", {"defaults": {"method": "POST", "path": path},
                                     "requests": requests}

    def change_one(self, call):
        path = "/v1/buckets/bench/collections/notes0/records"
        _, headers = call("GET", path + "?_limit=1", None)
        call("PUT", f"{path}/one", {"data": fields(1)})
        since = urllib.parse.quote(headers["ETag"])
        return ("GET", f"{path}?_since={since}", None), lambda reply: len(reply["data"]) == 1


class Watershed:
    def __init__(self, folder, database, program):
        where = ["--database", database.url] if database else []
        self.process = subprocess.Popen(
            [program, "serve", "--data", folder / "watershed", *where, "--port", "0", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        facts = json.loads(self.process.stdout.readline())
        address = urllib.parse.urlsplit(facts["url"])
        self.port = address.port
        self.headers = {"Content-Type": "application/json"}
        tokens = urllib.parse.urlencode({
            "ckAPIToken": facts["apiToken"], "ckWebAuthToken": facts["webAuthToken"]})
        self.base = f"/database/1/{facts['container']}/{facts['environment']}/private"
        self.tokens = tokens
        call = self.caller()
        call("POST", self.path("zones/modify"), {"operations": [
            {"operationType": "create", "zone": {"zoneID": self.zone(client)}}
            for client in range(CLIENTS)]})

    def path(self, verb):
        return f"{self.base}/{verb}?{self.tokens}"

    def zone(self, client):
        return {"zoneName": f"notes{client}"}

    def caller(self):
        return caller(self.port, self.headers)

    def batch(self, client, number):
        operations = [
            {"operationType": "create", "record": {
                "recordType": "Note",
                "fields": {name: {"value": value, "type": "STRING"} for name, value
                           in fields(number << 16 | index).items()}}} for index in range(SIZE)]
        return "POST", self.path("records/modify"), {
            "operations": operations, "zoneID": self.zone(client)}

    def change_one(self, call):
        reply, _ = call("POST", self.path("zones/lookup"), {
            "zones": [{"zoneID": self.zone(0)}]})
        token = reply["zones"][0]["syncToken"]
        call("POST", self.path("records/modify"), {"zoneID": self.zone(0), "operations": [
            {"operationType": "forceUpdate", "record": {
                "recordName": "one", "recordType": "Note", "fields": {}}}]})
        request = ("POST", self.path("changes/zone"), {"zones": [
            {"zoneID": self.zone(0), "syncToken": token}]})
        return request, lambda reply: len(reply["zones"][0]["records"]) == 1


def caller(port, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def call(method, path, body):
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        reply = response.read()
        if response.status >= 300:
            raise SystemExit(f"{method} {path}: {response.status} {reply[:500]}")
        return json.loads(reply), response.headers

    return call


def measure(server, database, batches, rounds):
    roots = {server.process.pid, database.process.pid}
    bodies = [[server.batch(client, client << 8 | number) for number in range(batches)]
              for client in range(CLIENTS)]
    encoded = [[(m, p, json.dumps(b).encode()) for m, p, b in each] for each in bodies]
    server.caller()(*encoded[0][0])

    def write(client):
        call = server.caller()
        for request in encoded[client]:
            call(*request)

    def timed(work):
        time_before, work_before = time.monotonic(), processor_seconds(roots)
        work()
        return time.monotonic() - time_before, processor_seconds(roots) - work_before

    def all_clients():
        threads = [threading.Thread(target=write, args=[client]) for client in range(CLIENTS)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()

    created = timed(all_clients)
    call = server.caller()
    request, holds = server.change_one(call)
    if not holds(call(*request)[0]):
        raise SystemExit("the changes are not the one record")

    def ask():
        for _ in range(rounds):
            call(*request)

    asked = timed(ask)
    count = CLIENTS * batches * SIZE
    return [count / created[0], count / created[1], rounds / asked[0], rounds / asked[1]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("watershed", help="the program, built with -c release")
    parser.add_argument("--batches", type=int, default=10, help="of each client")
    parser.add_argument("--venv", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) / "watershed-kinto-venv")
    options = parser.parse_args()
    results = []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="watershed-kinto-"))
    folder.chmod(0o755)
    try:
        for name in ["kinto", "watershed"]:
            database = PostgreSQL(folder / f"{name}-data")
            try:
                server = (Kinto(folder, database, options.venv) if name == "kinto"
                          else Watershed(folder, database, options.watershed))
                try:
                    # Kinto takes longer for each: fewer tell as much.
                    batches = max(1, options.batches // 5) if name == "kinto" else options.batches
                    results.append(measure(server, database, batches, 300))
                finally:
                    server.process.terminate()
                    server.process.wait()
            finally:
                database.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    titles = ["records created a second", "  a processor second",
              "askings for changes a second", "  a processor second"]
    print(f"{'':32}{'Kinto':>10}{'Watershed':>12}{'ratio':>10}")
    for title, kinto, ours in zip(titles, *results):
        print(f"{title:32}{kinto:10.0f}{ours:12.0f}{ours / kinto:9.1f}×")


if __name__ == "__main__":
    main()
