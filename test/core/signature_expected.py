"""What transformers 5.24 gives for ``signature_cases.GOOD``, in that order."""

from typing import Any

EXPECTED: list[dict[str, Any]] = [
    {
        "name": "temperature",
        "description": "Get the current temperature at a location.",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "The location to get the "
                    "temperature for, in the format "
                    '"City, Country"',
                },
                "unit": {
                    "type": "string",
                    "enum": ["celsius", "fahrenheit"],
                    "description": "The unit to return the temperature in.",
                },
            },
            "required": ["location", "unit"],
        },
    },
    {
        "name": "multiply",
        "description": "A function that multiplies two numbers",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "The first number to multiply"},
                "b": {"type": "number", "description": "The second number to multiply"},
            },
            "required": ["a", "b"],
        },
    },
    {
        "name": "every_basic",
        "description": "Basic types.",
        "parameters": {
            "type": "object",
            "properties": {
                "i": {"type": "integer", "description": "int"},
                "f": {"type": "number", "description": "float"},
                "s": {"type": "string", "description": "str"},
                "b": {"type": "boolean", "description": "bool"},
                "n": {"type": "null", "description": "null"},
                "x": {"description": "anything"},
                "li": {"type": "array", "description": "a list"},
                "t": {"type": "array", "description": "a tuple"},
                "d": {"type": "object", "description": "a dict"},
            },
            "required": ["i", "f", "s", "b", "n", "x", "li", "t", "d"],
        },
    },
    {
        "name": "optionals",
        "description": "Optionals.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "nullable": True, "description": "required, may be null"},
                "b": {"type": "string", "nullable": True, "description": "a text"},
                "c": {
                    "type": "array",
                    "items": {"type": "number"},
                    "nullable": True,
                    "description": "numbers",
                },
                "d": {"nullable": True, "description": "anything"},
                "e": {"type": "integer", "description": "no null"},
            },
            "required": ["a"],
        },
    },
    {
        "name": "unions",
        "description": "Unions.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": ["integer", "string"], "description": "plain"},
                "b": {
                    "type": ["integer", "number"],
                    "nullable": True,
                    "description": "sorted, with null",
                },
                "c": {
                    "anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}],
                    "description": "one of them has items",
                },
                "d": {"type": "array", "description": "the same in JSON"},
                "e": {
                    "anyOf": [{"type": "string", "enum": ["slow", "fast"]}, {"type": "integer"}],
                    "nullable": True,
                    "description": "an enum and a number",
                },
                "f": {
                    "anyOf": [
                        {"type": "object", "additionalProperties": {"type": "integer"}},
                        {"type": "array", "items": {"type": "string"}},
                    ],
                    "nullable": True,
                    "description": "two that have parts",
                },
            },
            "required": ["a", "b", "c", "d", "e", "f"],
        },
    },
    {
        "name": "literals",
        "description": "Literals.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "string", "enum": ["left", "right"], "description": "texts"},
                "b": {"type": "integer", "enum": [1, 2, 3], "description": "numbers"},
                "c": {
                    "type": ["string", "integer", "null"],
                    "enum": ["auto", 1, None],
                    "description": "mixed",
                },
                "d": {
                    "type": "string",
                    "enum": ["x"],
                    "nullable": True,
                    "description": "may be null",
                },
                "e": {"type": "boolean", "enum": [True], "description": "a constant"},
            },
            "required": ["a", "b", "c"],
        },
    },
    {
        "name": "enums",
        "description": "Enums.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "string", "enum": ["slow", "fast"], "description": "texts"},
                "b": {
                    "type": ["integer", "number", "null"],
                    "enum": [1, 0.5, None],
                    "description": "mixed",
                },
                "c": {"type": "integer", "enum": [1, 2], "description": "whole numbers"},
                "d": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["slow", "fast"]},
                    "description": "a list of them",
                },
                "e": {
                    "type": "string",
                    "enum": ["slow", "fast"],
                    "nullable": True,
                    "description": "may be null",
                },
            },
            "required": ["a", "b", "c", "d"],
        },
    },
    {
        "name": "containers",
        "description": "Containers.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "description": "whole numbers",
                },
                "b": {
                    "type": "array",
                    "items": {"type": "array", "items": {"type": "string"}},
                    "description": "lists of lists",
                },
                "c": {
                    "type": "object",
                    "additionalProperties": {"type": "number"},
                    "description": "numbers by name",
                },
                "d": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "array",
                        "items": {"type": "integer"},
                        "nullable": True,
                    },
                    "description": "lists by name",
                },
                "e": {
                    "type": "array",
                    "prefixItems": [{"type": "integer"}, {"type": "string"}, {"type": "number"}],
                    "description": "three things",
                },
                "f": {
                    "type": "array",
                    "prefixItems": [
                        {"type": "array", "items": {"type": "integer"}},
                        {"type": "object", "additionalProperties": {"type": "boolean"}},
                    ],
                    "description": "two containers",
                },
                "g": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "the keys are texts in JSON",
                },
                "h": {"type": "array", "items": {}, "description": "anything"},
            },
            "required": ["a", "b", "c", "d", "e", "f", "g", "h"],
        },
    },
    {
        "name": "docstring_forms",
        "description": "Does a thing. It has more\nthan one line.\n\nAnd a paragraph, in 日本語.",
        "parameters": {
            "type": "object",
            "properties": {
                "first": {"type": "integer", "description": "has a type in parentheses"},
                "second": {
                    "type": "string",
                    "description": "goes on in a second line and after an empty one: with a colon",
                },
                "third": {"type": "number", "description": "units: metres"},
                "fourth": {"type": "string", "enum": ["a", "b", "c"], "description": "a choice"},
                "fifth": {
                    "type": "integer",
                    "nullable": True,
                    "enum": [1, 2, None],
                    "description": "a number",
                },
            },
            "required": ["first", "second", "third"],
        },
        "return": {
            "type": "object",
            "additionalProperties": {"type": "number"},
            "description": "The distances\n    by name.",
        },
    },
    {
        "name": "returns_none",
        "description": "Returns nothing.",
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "integer", "description": "a number"}},
            "required": ["x"],
        },
        "return": {"type": "null"},
    },
    {
        "name": "returns_custom",
        "description": "What it returns has no schema.",
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "integer", "description": "a number"}},
            "required": ["x"],
        },
    },
    {
        "name": "no_arguments",
        "description": "Get the current local time as a string.",
        "parameters": {"type": "object", "properties": {}},
        "return": {"type": "string"},
    },
    {
        "name": "annotated",
        "description": "Annotations and texts as hints.",
        "parameters": {
            "type": "object",
            "properties": {
                "x": {"type": "integer", "description": "a number"},
                "y": {"type": "integer", "nullable": True, "description": "another"},
            },
            "required": ["x"],
        },
    },
    {
        "name": "described_by_the_next",
        "description": "An entry without a word takes the next line.",
        "parameters": {
            "type": "object",
            "properties": {
                "x": {"type": "integer", "description": "in a line of its own"},
                "y": {"type": "integer", "description": "short"},
            },
            "required": ["x", "y"],
        },
    },
    {
        "name": "cached",
        "description": "Cached.",
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "integer", "description": "a number"}},
            "required": ["x"],
        },
        "return": {"type": "integer"},
    },
    {
        "name": "later",
        "description": "Asynchronous.",
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "integer", "description": "a number"}},
            "required": ["x"],
        },
        "return": {"type": "integer"},
    },
    {
        "name": "move",
        "description": "Moves.",
        "parameters": {
            "type": "object",
            "properties": {
                "x": {"type": "number", "description": "where to, in metres"},
                "speed": {"type": "number", "description": "percent"},
            },
            "required": ["x"],
        },
    },
    {
        "name": "move",
        "description": "Moves.",
        "parameters": {
            "type": "object",
            "properties": {
                "x": {"type": "number", "description": "where to, in metres"},
                "speed": {"type": "number", "description": "percent"},
            },
            "required": ["x"],
        },
    },
    {
        "name": "make",
        "description": "Makes one.",
        "parameters": {
            "type": "object",
            "properties": {"name": {"type": "string", "description": "what it is called"}},
            "required": ["name"],
        },
    },
    {
        "name": "park",
        "description": "Parks.",
        "parameters": {
            "type": "object",
            "properties": {"slow": {"type": "boolean", "description": "whether slowly"}},
            "required": ["slow"],
        },
    },
]
