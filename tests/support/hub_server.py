"""A small hub on the loopback address: the calls that huggingface_hub makes to fetch, create and upload models."""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

TOKEN = "hf_of_the_owner"


@dataclass
class Repository:
    """One model: its files, whether it is private, and a commit that changes with each upload."""

    private: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    commits: int = 1

    @property
    def sha(self) -> str:
        return hashlib.sha1(f"{self.commits} {sorted(self.files)}".encode()).hexdigest()


class Hub:
    """``address`` answers as the hub does for the models in ``repositories``; ``asked`` are the requests it had."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.asked: list[str] = []
        self.stored: dict[str, bytes] = {}
        hub = self

        class Handler(_Handler):
            owner = hub

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    owner: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, content: object, status: int = 200, **headers: str) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), "Connection": "close", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    @property
    def trusted(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def repository(self, name: str) -> Repository | None:
        """The model, if whoever asks may see it; else the answer is the hub's: 401, whether or not it is there."""
        found = self.owner.repositories.get(name)
        if found is None or (found.private and not self.trusted):
            self.answer({"error": "Repository not found"}, 401, X_Error_Code="RepoNotFound")
            return None
        return found

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        self.owner.asked.append(f"{self.command} {path}")
        parts = path.split("/")
        if parts[:2] == ["api", "models"]:
            self._about("/".join(parts[2:4]), parts[4:])
        elif parts[2:3] == ["resolve"]:
            self._file("/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        else:
            self.answer({"error": "no such call"}, 404)

    def _about(self, name: str, rest: list[str]) -> None:
        found = self.repository(name)
        if found is None:
            return
        if rest[:1] in (["revision"], ["tree"]) and rest[1] not in ("main", found.sha):
            self.answer({"error": "Invalid rev id"}, 404, X_Error_Code="RevisionNotFound")
        elif rest[:1] == ["tree"]:
            entries = [{"type": "file", "path": p, "size": len(d), "oid": _oid(d)} for p, d in found.files.items()]
            self.answer(entries)
        else:
            siblings = [{"rfilename": path} for path in found.files]
            self.answer({"id": name, "modelId": name, "sha": found.sha, "private": found.private, "siblings": siblings})

    def _file(self, name: str, revision: str, path: str) -> None:
        found = self.repository(name)
        if found is None:
            return
        if revision not in ("main", found.sha):
            self.answer({"error": "no revision"}, 404, X_Error_Code="RevisionNotFound")
        elif path not in found.files:
            self.answer({"error": "no entry"}, 404, X_Error_Code="EntryNotFound", X_Repo_Commit=found.sha)
        else:
            data = found.files[path]
            self.answer(data, ETag=f'"{_oid(data)}"', X_Repo_Commit=found.sha)

    def do_PUT(self) -> None:
        self.owner.stored[self.path.rpartition("/")[2]] = self.body()
        self.answer({})

    def do_POST(self) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        self.owner.asked.append(f"POST {path}")
        body = self.body()
        if path == "api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        if not self.trusted:
            return self.answer({"error": "Invalid username or password."}, 401)
        if path == "api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            self.owner.repositories[name] = Repository(private=asked.get("visibility") == "private", commits=0)
            return self.answer({"url": f"{self.owner.address}/{name}", "name": name})
        if path.endswith("info/lfs/objects/batch"):
            objects = json.loads(body)["objects"]
            place = f"{self.owner.address}/store"
            actions = [{**o, "actions": {"upload": {"href": f"{place}/{o['oid']}"}}} for o in objects]
            return self.answer({"transfer": "basic", "objects": actions})
        name = "/".join(path.split("/")[2:4])
        if "/preupload/" in path:
            files = [file["path"] for file in json.loads(body)["files"]]
            modes = {p: "lfs" if p.endswith(".safetensors") else "regular" for p in files}
            return self.answer(
                {"files": [{"path": p, "uploadMode": m, "shouldIgnore": False} for p, m in modes.items()]}
            )
        return self._commit(self.owner.repositories[name], name, body)

    def _commit(self, found: Repository, name: str, body: bytes) -> None:
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                found.files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                found.files[value["path"]] = self.owner.stored[value["oid"]]
        found.commits += 1
        address = f"{self.owner.address}/{name}/commit/{found.sha}"
        self.answer({"success": True, "commitOid": found.sha, "commitUrl": address})


def _oid(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
