#!/usr/bin/env python3
"""A client of ADK's HTTP API, for a terminal: it says something to an agent, shows what comes of it, and answers what agents
ask of a person. Python 3.9 or later, and its standard library only."""

import argparse
import http.client
import http.server
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

CREDENTIAL = "adk_request_credential"
CONFIRMATION = "adk_request_confirmation"
INPUT = "adk_request_input"

SILENCE = 60  # seconds without a byte after which a connection counts as broken; servers send a comment every 15
LATER = (429, 502, 503, 504)  # statuses after which the same request is sent once more
WAITING = 3  # exit status: something still waits for an answer


class Refused(Exception):
    """The server will not do it, and asking again does not help."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects are not followed: the token is for the server that was named."""

    def redirect_request(self, *args, **kwargs):
        return None


class Client:
    """ADK's API for one user of one app."""

    def __init__(self, server, token, app, user):
        self.server, self.token, self.app, self.user = server.rstrip("/"), token, app, user
        self.opener = urllib.request.build_opener(NoRedirects)

    def open(self, method, path, body=None, headers=None):
        request = urllib.request.Request(self.server + path, method=method, headers=headers or {})
        if body is not None:
            request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        return self.opener.open(request, timeout=SILENCE)

    def call(self, method, path, body=None):
        try:
            with self.open(method, path, body) as response:
                return json.load(response)
        except urllib.error.HTTPError as e:
            raise Refused(f"{method} {path}: {e.code} {e.read().decode(errors='replace')}") from e

    def sessions(self):
        return f"/apps/{urllib.parse.quote(self.app, safe='')}/users/{urllib.parse.quote(self.user, safe='')}/sessions"

    def run(self, session, **more):
        """Yields the events that follow. A stream that breaks is taken up where it broke: the same body with the id of the
        last frame posts nothing twice, and before there is a first frame the key sees to that."""
        body = {"appName": self.app, "userId": self.user, "sessionId": session, "streaming": False, **more}
        headers = {"Accept": "text/event-stream", "Idempotency-Key": str(uuid.uuid4())}
        pause = 0.5
        while True:
            try:
                with self.open("POST", "/run_sse", body, headers) as response:
                    for frame, event in frames(response):
                        if "error" in event and (event.get("error_details") or {}).get("status") in LATER:
                            break
                        if "error" in event:
                            raise Refused(event["error"])
                        if frame:
                            headers["Last-Event-ID"] = frame
                        pause = 0.5
                        yield event
                    else:
                        return
            except urllib.error.HTTPError as e:
                if e.code not in LATER:
                    raise Refused(f"{e.code} {e.read().decode(errors='replace')}") from e
            except (OSError, http.client.HTTPException):
                pass
            say("(the server is out of reach; trying again)")
            time.sleep(pause)
            pause = min(2 * pause, 30)


def lines(response):
    """Yields the lines of a response. Unlike iterating over it, read1 tells an end from a connection that was cut."""
    rest = b""
    while chunk := response.read1(1 << 16):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


def frames(response):
    """Yields the server-sent events of a response, each with the id that is current then."""
    current, data = "", []
    for line in lines(response):
        line = line.decode().rstrip("\r")
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "id":
            current = value
        elif field == "data":
            data.append(value)
        elif line == "" and data:
            yield current, json.loads("\n".join(data))
            data = []


class Session:
    """What was said, and what waits for the person."""

    def __init__(self):
        self.seen = set()
        self.open = {}  # the call to reply to, by the call that waits
        self.invocation = ""
        self.failed = False

    def take(self, event):
        """Shows an event and keeps what it asks, once, whether it comes from a stream or from the stored session."""
        if event.get("partial") or event["id"] in self.seen:
            return
        self.seen.add(event["id"])
        self.invocation = event.get("invocationId", self.invocation)
        self.failed = bool(event.get("errorCode") or event.get("errorMessage"))
        author, parts = event["author"], event.get("content", {}).get("parts", [])
        long_running = event.get("longRunningToolIds") or []
        if any("text" in p or ("functionCall" in p and not requests(p["functionCall"])) for p in parts):
            # An agent goes on when everything that it has asked for is there.
            self.open = {k: v for k, v in self.open.items() if v["author"] != author}
        for part in parts:
            call, result = part.get("functionCall"), part.get("functionResponse")
            if part.get("text"):
                say(f"{author}: {part['text']}")
            if call and call["id"] in long_running:  # only what the server marks so asks a person; a model may write anything
                self.open[waits(call)] = {**call, "author": author}
            if call and not requests(call):
                say(f"{author} calls {call['name']} {compact(call.get('args'))}")
            if result:
                say(f"{result['name']} {'says so far' if result.get('willContinue') else 'answers'} {compact(result.get('response'))}")
                if not result.get("willContinue"):
                    self.open.pop(result["id"], None)
        if self.failed:
            say(f"{author} failed: {event.get('errorCode', '')} {event.get('errorMessage', '')}")


def requests(call):
    return call["name"] in (CREDENTIAL, CONFIRMATION, INPUT)


def waits(call):
    """The id of the call that goes on after the reply."""
    args = call.get("args") or {}
    return args.get("functionCallId") or args.get("originalFunctionCall", {}).get("id") or call["id"]


def answer(call, redirect):
    """Asks the person, and returns the response, or None for later."""
    args = call.get("args") or {}
    if call["name"] == CREDENTIAL:
        return log_in(args["authConfig"], redirect)
    if call["name"] == CONFIRMATION:
        original = args["originalFunctionCall"]
        hint = args.get("toolConfirmation", {}).get("hint", "")
        return {"confirmed": ask(f"Run {original['name']} {compact(original.get('args'))}? {hint} [y/N] ").lower() in ("y", "yes")}
    if call["name"] == INPUT:
        schema = args.get("responseSchema")
        return {"result": ask(args.get("message", "") + (f" ({compact(schema)})" if schema else "") + " > ")}
    said = ask(f"Result of {call['name']}, as JSON or text; empty for later > ")
    try:
        value = json.loads(said)
    except ValueError:
        value = said
    return None if said == "" else value if isinstance(value, dict) else {"result": value}


def log_in(config, redirect):
    """Has the person log in, and returns the config with the address that the browser came back to, if there is one."""
    oauth = config["exchangedAuthCredential"]["oauth2"]
    link = oauth["authUri"]
    if redirect:  # authUri may have a query of its own
        link += ("&" if "?" in link else "?") + urllib.parse.urlencode({"redirect_uri": redirect})
        oauth["redirectUri"] = redirect
    say("Log in here:\n  " + link)
    if not redirect:
        ask("Press Enter when you have. ")
    elif urllib.parse.urlsplit(redirect).hostname in ("127.0.0.1", "localhost"):
        oauth["authResponseUri"] = listen(redirect, oauth.get("state"))
    else:
        oauth["authResponseUri"] = ask("Paste the address that your browser has come to: ")
    return config


def listen(redirect, state):
    """Serves redirect until the browser comes back to it with the right state, and returns the address."""
    at, came = urllib.parse.urlsplit(redirect), []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            u = urllib.parse.urlsplit(self.path)
            mine = u.path == (at.path or "/") and urllib.parse.parse_qs(u.query).get("state") == [state]
            if mine:
                came.append(urllib.parse.urlunsplit((at.scheme, at.netloc, u.path, u.query, "")))
            self.send_response(200 if mine else 404)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.end_headers()
            self.wfile.write(b"You can close this window." if mine else b"Not here.")

        def log_message(self, *args):
            pass

    with http.server.HTTPServer((at.hostname, at.port or 80), Handler) as server:
        while not came:
            server.handle_request()
    return came[0]


def say(text):
    print(printable(text), flush=True)


def ask(prompt):
    print(printable(prompt), end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        print(flush=True)
        raise EOFError
    return line.strip()


def printable(text):
    """What is shown comes from models, tools and servers: it must not steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


def compact(value):
    text = json.dumps(value if value is not None else {}, ensure_ascii=False)
    return text if len(text) <= 500 else text[:500] + "…"


def converse(client, args):
    session = Session()
    if args.session and not args.message:
        for event in client.call("GET", f"{client.sessions()}/{urllib.parse.quote(args.session, safe='')}")["events"]:
            session.take(event)
        if not session.invocation:
            raise Refused(f"session {args.session} is empty; say something")
        first = {"invocationId": session.invocation}  # ADK's way to go on, without a message
    else:
        if not args.session:
            args.session = client.call("POST", client.sessions(), {})["id"]
        say(f"(session {args.session})")
        first = {"newMessage": {"role": "user", "parts": [{"text": args.message}]}}
    for event in client.run(args.session, **first):
        session.take(event)
    while session.open:
        parts = []
        for call in session.open.values():
            response = answer(call, args.redirect)
            if response is not None:
                parts.append({"functionResponse": {"id": call["id"], "name": call["name"], "response": response}})
        if not parts:
            raise EOFError
        try:
            for event in client.run(args.session, newMessage={"role": "user", "parts": parts}):
                session.take(event)
        except Refused as e:  # such as an answer that does not fit; the question stands
            say(f"(refused: {e})")
    return 1 if session.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog="ADK_TOKEN: the bearer token, where the server wants one. Exit status 3: something still waits.")
    parser.add_argument("--server", default="http://127.0.0.1:8080", help="default %(default)s")
    parser.add_argument("--app", default="", help="default: the only one that there is")
    parser.add_argument("--user", default="user", help="default %(default)s")
    parser.add_argument("--session", default="", help="go on with it; without a message: from where it is")
    parser.add_argument("--redirect", default="", help="where logins come back to, if the server allows it; at 127.0.0.1 this program listens")
    parser.add_argument("message", nargs="?", default="")
    args = parser.parse_args()
    if not args.message and not args.session:
        parser.error("a message, or --session to go on with")
    client = Client(args.server, os.environ.get("ADK_TOKEN", ""), args.app, args.user)
    try:
        if not client.app:
            apps = client.call("GET", "/list-apps")
            if len(apps) != 1:
                raise Refused("--app is missing; there are: " + ", ".join(apps))
            client.app = apps[0]
        return converse(client, args)
    except EOFError:
        say(f"(still waiting; go on with --app {client.app} --session {args.session})")
        return WAITING
    except (Refused, OSError) as e:
        print(printable(f"agent_cli: {e}"), file=sys.stderr)
        return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
