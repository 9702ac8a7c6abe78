import socket

from lerobot_tool_bridge.cli.own_domain import own_domain


def test_two_at_once_have_two_domains(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    with own_domain() as first:
        with own_domain() as second:
            assert first != second
        with own_domain() as again:
            assert again == second, "it was given back"


def test_a_domain_in_which_somebody_is(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as somebody:
        with own_domain() as domain:
            somebody.bind(("", 7400 + 250 * domain + 10))
        with own_domain() as other:
            assert other != domain
