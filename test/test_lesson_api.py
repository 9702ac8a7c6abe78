"""Tool calling by hand, as a course teaches it: requests in free text."""

from __future__ import annotations

from typing import Any

import pytest

from lerobot_tool_bridge.core.adapt import function_tool
from lerobot_tool_bridge.core.errors import LoadError, Rejection
from lerobot_tool_bridge.free_text import TextDispatcher
from lerobot_tool_bridge.local import Local
from lerobot_tool_bridge.tools.calculator import evaluate

RAN: list[Any] = []


def calcular(expressao):
    RAN.append(expressao)
    return float(evaluate(str(expressao)))


def buscar(consulta: str, limite: int = 3) -> str:
    """Busca.

    Args:
        consulta: o tema
    """
    return f"{consulta} {limite}"


FERRAMENTAS = {
    "calcular": ("Resolve uma expressão aritmética.", calcular, "expressao"),
    "buscar": ("Busca um tema na base de notas de aula.", buscar),
}


@pytest.fixture
def despachar() -> TextDispatcher:
    RAN.clear()
    return TextDispatcher(FERRAMENTAS)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"ferramenta": "calcular", "expressao": "28*3/4"}', "21.0"),
        (
            'Vou usar a calculadora.\n{"ferramenta": "calcular", "expressao": "28*3/4"}\nPronto.',
            "21.0",
        ),
        ('O par {"x": 1} não é um pedido. {"ferramenta": "buscar", "consulta": "{}"}', "{} 3"),
        ('{"ferramenta": "buscar", "consulta": "a", "limite": 1}', "a 1"),
        ('<think>hm</think>{"ferramenta": "buscar", "consulta": "a"}', "a 3"),
    ],
)
def test_a_request_is_read_and_run(despachar, text, answer):
    assert despachar(text) == answer


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"ferramenta": "voar", "destino": "lua"}', 'unknown_tool: There is no tool "voar"'),
        ('{"ferramenta": "calcular"}', "expressao is missing"),
        ('{"ferramenta": "calcular", "conta": "1"}', "conta: this tool has no such argument"),
        ('{"ferramenta": "buscar", "consulta": 1}', "consulta must be a text, got 1"),
        ('{"ferramenta": "calcular", "expressao": "9**9**9**9"}', "bad_expression"),
        ('{"ferramenta": "calcular", "expressao": "().__class__"}', "bad_expression"),
        ('{"ferramenta": "calcular", "expressao": ', "cut off"),
        ('{"ferramenta": "calcular", "expressao": NaN}', "Error: "),
        ("Não preciso de ferramenta.", 'Write one JSON object: {"ferramenta": "calcular"'),
        ("", "no request in the text"),
        ('{"tool": "calcular", "expressao": "1"}', "no request in the text"),
        ('```json\n{"ferramenta": "calcular", "expressao": "1"}\n```', "Write calls outside"),
        ('<think>{"ferramenta": "calcular", "expressao": "1"}</think>', "stands in reasoning"),
        (
            '{"ferramenta": "calcular", "expressao": "1"}{"ferramenta": "buscar", "consulta": ""}',
            "more than one request, and none was run",
        ),
        ("{" * 70_000, "64 kB"),
    ],
)
def test_an_error_tells_the_model_what_to_change(despachar, text, words):
    answer = despachar(text)
    assert answer.startswith("Error: ")
    assert words in answer
    assert RAN in ([], ["9**9**9**9"], ["().__class__"])


def test_the_model_can_try_again(despachar):
    history = [{"role": "user", "content": "Quanto é 28*3/4?"}]
    for said in (
        '{"ferramenta": "calcula", "expressao": "28*3/4"}',
        '{"ferramenta": "calcular", "expressao": "28*3/4"}',
    ):
        history += [{"role": "assistant", "content": said}, despachar.run(said)]
    assert history[2]["content"].startswith("Error: unknown_tool")
    assert "Did you mean calcular?" in history[2]["content"]
    assert history[4]["content"] == "21.0"
    assert all(m["name"] and m["tool_call_id"] for m in history if m["role"] == "tool")
    assert despachar.statistics()["calcular"]["succeeded"] == 1


def test_names_of_the_keys():
    nested = TextDispatcher(FERRAMENTAS, name_key="action", arguments_key="input")
    assert nested('{"action": "buscar", "input": {"consulta": "a"}}') == "a 3"
    assert "no request" in nested('{"ferramenta": "buscar", "consulta": "a"}')
    assert nested.example() == '{"action": "calcular", "input": {"expressao": "..."}}'
    assert nested.read('{"action": "buscar", "input": {}}') == {"name": "buscar", "arguments": {}}
    with pytest.raises(Rejection):
        nested.read("nothing")


def test_the_tools_are_described(despachar):
    text = despachar.describe()
    assert "- calcular: Resolve uma expressão aritmética." in text
    assert "    consulta (string): o tema" in text
    assert "    limite (integer, optional)" in text
    assert text.endswith('{"ferramenta": "calcular", "expressao": "..."}')


def test_other_ways_to_give_tools():
    def somar(a: float, b: float) -> float:
        """Soma dois números.

        Args:
            a: um número
            b: outro número
        """
        return a + b

    for tools in (
        {"somar": somar},
        [somar],
        {"somar": ("Soma.", somar)},
        {"somar": ("Soma.", somar, ["a", "b"])},
    ):
        assert TextDispatcher(tools)('{"ferramenta": "somar", "a": 1, "b": 2.5}') == "3.5"
    assert (
        TextDispatcher({"contar": ("Conta.", len, "texto")})(
            '{"ferramenta": "contar", "texto": "abc"}'
        )
        == "3"
    )
    with pytest.raises(LoadError, match="no name for a tool"):
        TextDispatcher({"não": ("x", somar)})


def test_a_key_that_stands_twice_runs_nothing(despachar):
    answer = despachar('{"ferramenta": "calcular", "expressao": "1", "expressao": "2"}')
    assert answer.startswith("Error: ")
    assert RAN == []


def test_local_and_text_are_one_dispatcher():
    local = Local([function_tool(buscar, "buscar")])
    answer = local.call({"name": "buscar", "arguments": {"consulta": "a"}})
    assert (answer.good, answer.message["content"]) == (True, "a 3")
