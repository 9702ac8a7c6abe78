"""Tool calling by hand, as a course teaches it: a registry, and JSON read out of free text.

What the lesson writes itself, a dispatcher, is imported; so is a safe calculator.
"""

import sys

from lerobot_tool_bridge.free_text import TextDispatcher
from lerobot_tool_bridge.tools.calculator import evaluate


def calcular(expressao):
    return float(evaluate(str(expressao)))


def buscar(consulta):
    base = {"derivada": "A derivada mede a taxa de variação de uma função."}
    for chave, texto in base.items():
        if chave in str(consulta).lower():
            return texto
    return "Não encontrei no material."


# Registro: nome -> (descrição, função, argumento esperado).
FERRAMENTAS = {
    "calcular": ("Resolve uma expressão aritmética.", calcular, "expressao"),
    "buscar": ("Busca um tema na base de notas de aula.", buscar, "consulta"),
}

despachar = TextDispatcher(FERRAMENTAS)

# Simula pedidos do modelo, alguns inválidos.
pedidos = [
    'Vou calcular: {"ferramenta": "calcular", "expressao": "28*3/4"}',
    '{"ferramenta": "buscar", "consulta": "o que é a derivada?"}',
    '{"ferramenta": "voar", "destino": "lua"}',
    '{"ferramenta": "calcular", "conta": "1+1"}',
    '{"ferramenta": "calcular", "expressao": "__import__(1)"}',
    '{"ferramenta": "calcular", "expressao": ',
    "Não preciso de ferramenta.",
]


def main() -> int:
    print(despachar.describe())
    for p in pedidos:
        print(p, "->", despachar(p))
    return 0


if __name__ == "__main__":
    sys.exit(main())
