"""scripts/fetch-data against a local HTTP server with small generated archives in the formats of the sources."""

import gzip
import hashlib
import http.server
import importlib.machinery
import importlib.util
import io
import pathlib
import random
import sys
import tarfile
import threading
import zipfile

import numpy as np
import pandas as pd
import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "fetch-data"
loader = importlib.machinery.SourceFileLoader("fetch_data", str(SCRIPT))
spec = importlib.util.spec_from_loader("fetch_data", loader)
fetch_data = importlib.util.module_from_spec(spec)
sys.modules["fetch_data"] = fetch_data
loader.exec_module(fetch_data)


class Server:
    """Serves `files` by path, counts requests, and cuts the content of the paths in `truncated`."""

    def __init__(self):
        self.files, self.requests, self.truncated = {}, [], set()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append(self.path)
                content = server.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if self.path in server.truncated else content)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def publish(self, name, *contents):
        for url, content in zip(fetch_data.SETS[name].urls, contents, strict=True):
            self.files["/" + url.partition("://")[2]] = content


@pytest.fixture
def server():
    running = Server()
    yield running
    running.http.shutdown()
    running.http.server_close()


def zipped(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def ratings(count):
    draws = random.Random(3)
    pairs = sorted({(draws.randrange(1, 40), draws.randrange(1, 30)) for _ in range(count)})
    return [(str(u), f"{m:07d}", str(draws.randrange(11)), str(draws.randrange(10**9, 10**9 + 50))) for u, m in pairs]


def sources(name):
    """Return the contents of the downloads of a set, in the format of the source."""
    draws = random.Random(name)
    if name == "adult":
        return ["".join(", ".join([str(i), "State-gov", "7", *"abcdefghijk", "<=50K"]) + "\n" for i in range(50)).encode() + b"\n"]
    if name == "air":
        lines = ['"No","year","month","day","hour","PM2.5","PM10","SO2","wd","station"']
        for i in range(60):
            target = "NA" if i % 7 == 0 else str(draws.randrange(300))
            lines.append(f'{i},2013,3,1,{i % 24},{target},5,{draws.choice(["NA", "4", "2.2848"])},{draws.choice(["NA", "NE"])},"A"')
        inner = zipped("PRSA_Data/PRSA_Data_Aotizhongxin_20130301-20170228.csv", "\n".join(lines) + "\n")
        return [zipped("PRSA2017_Data.zip", inner)]
    if name == "movietweetings":
        return ["".join("::".join(row) + "\n" for row in ratings(300)).encode()]
    if name == "ml-small":
        text = "userId,movieId,rating,timestamp\r\n" + "".join(",".join(row) + "\r\n" for row in ratings(200))
        return [zipped("ml-latest-small/ratings.csv", text)]
    if name == "criteo-sample":
        rows = [[str(i % 2)] + [draws.choice(["", "3"])] * 13 + [draws.choice(["", "05db9164"])] * 26 for i in range(9000)]
        text = "".join("\t".join(row) + "\n" for row in rows).encode()
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            entry = tarfile.TarInfo("./dac_sample.txt")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
        return [buffer.getvalue()]
    if name == "a9a":
        return [b"-1 3:1 11:1 \n+1 5:1 \n", b"-1 1:1 \n"]
    data = "".join(f"{draws.gauss(0, 1):.5g},{i},{draws.gauss(0, 1e-5):.5g}\n" for i in range(30))
    masks = "".join(",".join(str(int(i % 10 == (j + 3) % 10)) for j in range(10)) + "\n" for i in range(30))
    return [gzip.compress(data.encode()), gzip.compress(masks.encode())]


def write_sums(name, path):
    """Write the sums of the files that are made of the generated sources."""
    files = fetch_data.SETS[name].make(sources(name))
    path.write_text("".join(f"{hashlib.sha256(text.encode()).hexdigest()}  {file}\n" for file, text in files.items()))
    return files


@pytest.mark.parametrize("name", fetch_data.SETS)
def test_downloads_and_writes_files_with_committed_names(name, server, tmp_path):
    server.publish(name, *sources(name))
    files = write_sums(name, tmp_path / "sums")
    assert set(files) <= set(fetch_data.read_sums(fetch_data.SUMS))
    arguments = [str(tmp_path / "data"), name, "--mirror", server.url, "--sums", str(tmp_path / "sums")]
    assert fetch_data.main(arguments) == 0
    for path, text in files.items():
        assert (tmp_path / "data" / path).read_text() == text
    assert fetch_data.main(["--check", str(tmp_path / "data"), "--sums", str(tmp_path / "sums")]) == 0
    requests = len(server.requests)
    assert fetch_data.main(arguments) == 0
    assert len(server.requests) == requests  # the second run uses the kept downloads


def test_every_committed_file_has_a_source_or_a_reason():
    made = {path for name in fetch_data.SETS for path in fetch_data.SETS[name].make(sources(name))}
    for path in fetch_data.read_sums(fetch_data.SUMS):
        assert path in made or path.split(".")[0] in fetch_data.UNAVAILABLE


@pytest.mark.parametrize("name", ["adult", "air", "movietweetings", "ml-small", "criteo-sample"])
def test_splits_are_partitions(name, tmp_path):
    files = fetch_data.SETS[name].make(sources(name))
    stem = next(path for path in files if path.endswith(".train.csv")).removesuffix(".train.csv")
    train, test = (files[f"{stem}.{part}.csv"].splitlines()[1:] for part in ("train", "test"))
    assert round(len(test) / (len(train) + len(test)), 1) == (0.2 if name in ("adult", "criteo-sample") else 0.1)
    if f"{stem}.stream.csv" in files:
        stream = files[f"{stem}.stream.csv"].splitlines()[1:]
        assert sorted(stream) == sorted(train + test)
        assert [int(row.split(",")[3]) for row in stream] == sorted(int(row.split(",")[3]) for row in stream)


def test_folds_contain_the_first_split():
    files = fetch_data.SETS["energy"].make(sources("energy"))
    folds = pd.read_csv(io.StringIO(files["folds/energy.csv"]))
    assert sorted(folds.fold.unique()) == list(range(1, 11))
    for part, chosen in (("train", folds[folds.fold != 1]), ("test", folds[folds.fold == 1])):
        rows = pd.read_csv(io.StringIO(files[f"tabular/energy.{part}.csv"]))
        pd.testing.assert_frame_equal(rows, chosen.drop(columns="fold").reset_index(drop=True))


def test_numbers_are_written_as_by_pandas():
    cells = [["1", "2", "NA", "x", "0.00001"], ["3", "NA", "2.2848", "NA", "7"]]
    text = "a,b,c,d,e\n" + "\n".join(",".join(row) for row in cells) + "\n"
    expected = pd.read_csv(io.StringIO(text)).to_csv(index=False).splitlines()[1:]
    assert [",".join(row) for row in fetch_data.normalize_numbers(cells)] == expected


def test_one_hot_rows_have_the_values_of_the_table():
    files = fetch_data.SETS["movietweetings"].make(sources("movietweetings"))
    for part in ("train", "test"):
        table = pd.read_csv(io.StringIO(files[f"ratings/movietweetings.{part}.csv"]), dtype=str)
        rows = [line.split() for line in files[f"ratings/movietweetings.{part}.svm"].splitlines()]
        assert [row[0] for row in rows] == list(table.rating)
        for column, cells in (("user", [row[1] for row in rows]), ("movie", [row[2] for row in rows])):
            assert len(set(zip(table[column], cells))) == len(set(cells)) == table[column].nunique()


@pytest.mark.parametrize("problem", ["missing", "truncated", "no server"])
def test_failed_download_names_the_address_and_writes_nothing(problem, server, tmp_path, capsys):
    if problem != "missing":
        server.publish("a9a", *sources("a9a"))
    server.truncated.update(server.files if problem == "truncated" else [])
    write_sums("a9a", tmp_path / "sums")
    mirror = "http://127.0.0.1:1" if problem == "no server" else server.url
    assert fetch_data.main([str(tmp_path / "data"), "a9a", "--mirror", mirror, "--sums", str(tmp_path / "sums")]) == 1
    message = capsys.readouterr().err
    assert mirror in message and str(tmp_path / "data" / "downloads" / "a9a-a9a") in message
    assert [path for path in (tmp_path / "data").rglob("*") if path.is_file()] == []


def test_file_copied_to_downloads_replaces_the_download(tmp_path):
    write_sums("a9a", tmp_path / "sums")
    (tmp_path / "downloads").mkdir()
    for url, content in zip(fetch_data.SETS["a9a"].urls, sources("a9a"), strict=True):
        (tmp_path / "downloads" / fetch_data.download_name("a9a", url)).write_bytes(content)
    assert fetch_data.main([str(tmp_path), "a9a", "--mirror", "http://127.0.0.1:1", "--sums", str(tmp_path / "sums")]) == 0


def test_changed_source_is_not_written(server, tmp_path, capsys):
    server.publish("a9a", *sources("a9a"))  # its sums differ from the committed ones
    assert fetch_data.main([str(tmp_path / "data"), "a9a", "--mirror", server.url]) == 1
    assert "binary/a9a.train.svm" in capsys.readouterr().err
    assert not (tmp_path / "data" / "binary").exists()


@pytest.mark.parametrize("name", ["air", "ml-small", "criteo-sample", "energy"])
@pytest.mark.parametrize("content", [b"", b"<html>moved</html>", gzip.compress(b"x")])
def test_unreadable_download_is_an_error(name, content, server, tmp_path, capsys):
    server.publish(name, *[content] * len(fetch_data.SETS[name].urls))
    assert fetch_data.main([str(tmp_path / "data"), name, "--mirror", server.url]) == 1
    assert name in capsys.readouterr().err


def test_check_reports_missing_and_different_files(tmp_path, capsys):
    files = write_sums("a9a", tmp_path / "sums")
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "a9a.train.svm").write_text("other\n")
    assert fetch_data.main(["--check", str(tmp_path), "--sums", str(tmp_path / "sums")]) == 1
    report = capsys.readouterr().out
    assert all(path in report for path in files)


def test_unknown_set_is_wrong_usage(tmp_path):
    with pytest.raises(SystemExit) as stop:
        fetch_data.main([str(tmp_path), "nosuch"])
    assert stop.value.code == 2


def test_split_depends_only_on_the_number_of_rows():
    rows = [[str(i)] for i in range(100)]
    train, test = fetch_data.split_rows(rows, 0.25)
    assert len(test) == 25 and sorted(train + test) == sorted(rows)
    order = np.random.default_rng(fetch_data.SPLIT_SEED).permutation(100)
    assert [int(row[0]) for row in train + test] == list(order)
