"""The words of ``rules`` in English, Portuguese, Chinese and Japanese: patterns and answers."""

from __future__ import annotations

import re

COLOURS = {
    "red": r"\bred\b|vermelh[oa]|红|紅|赤",
    "orange": r"\borange\b|laranja|橙|オレンジ",
    "yellow": r"\byellow\b|amarel[oa]|黄",
    "green": r"\bgreen\b|\bverde\b|绿|綠|緑|みどり",
    "blue": r"\bblue\b|\bazul\b|蓝|藍|青",
    "purple": r"\bpurple\b|\bviolet\b|\brox[oa]\b|紫",
    "pink": r"\bpink\b|cor-de-rosa|\brosa\b|粉|ピンク",
    "brown": r"\bbrown\b|marrom|castanh[oa]|棕|褐|茶",
    "turquoise": r"turquoise|\bcyan\b|turquesa|水色|青绿",
}
ANY_COLOUR = "|".join(COLOURS.values())

# What is tried first stands first: "take a picture" is no grasp, "put down" no glance downward.
INTENTS = {
    "stop": r"^\W*(please |now )?(stop|halt|freeze|abort)\b"
    r"|^\W*(por favor,? )?(pare|parar?\W*$|alto)\b"
    r"|停(下|止|$|！|!)|别动|別動|止ま|止め|ストップ|動くな",
    "say": r"\b(say|speak)\b|\b(diga|dizer|fale|fala)\b|说|說|言って|話して|しゃべって",
    "picture": r"\b(picture|photo|snapshot|photograph)\b|\b(foto|fotografia|fotografe)\b"
    r"|拍|照片|写真|撮",
    "compute": r"\b(calculate|compute|how much is|what is|what's)\b(?=[^a-z]*\d)"
    r"|\b(calcule|quanto é)\b|计算|計算|等于多少|いくつ",
    "place": r"\b(put|place|set|drop|lay|let go|release)\b"
    r"|\b(coloque|coloca|ponha|põe|bote|largue|solte|deixe)\b|放|摆|置|おい[てた]|下ろ|降ろ",
    "carry": r"\b(move|bring|carry|transfer)\b|\b(mova|mover|leve|levar|traga)\b|移|搬|运|動か|運",
    "grab": r"\b(pick|grab|grasp|take|get|lift|fetch|hold)\b"
    r"|\b(pegue|pega|pegar|agarre|apanhe|segure|levante)\b|抓|拿|取|捡|拾|夹|つか[みむんま]|掴"
    r"|持ち上|持って",
    "find": r"\b(find|where|what do you see|what can you see|search|detect|locate)\b"
    r"|\b(onde|encontre|procure|ache|o que você vê|o que vês)\b|哪|找|看到|看见|どこ|探|見え",
    "look": r"\b(look|turn|face|watch|glance)\b|\b(olhe|olha|vire|olhar)\b|看|转|見|向[いけ]",
    "state": r"\b(state|status|position of the arm)\b|\b(estado|situação)\b|状态|狀態|状態",
    "hello": r"^\W*(hi|hello|hey|thanks|thank you|olá|oi|obrigad[oa]|你好"
    r"|谢谢|こんにちは|ありがとう)",
}  # fmt: skip

WAYS = {
    "around": r"\baround\b|ao redor|em volta|四周|周围|周り|見回",
    "left": r"\bleft\b|esquerda|左",
    "right": r"\bright\b|direita|右",
    "up": r"\bup(wards)?\b|cima|上",
    "table": r"\b(table|desk)\b|\bmesa\b|桌|机|テーブル|つくえ",
    "down": r"\bdown(wards)?\b|baixo|下",
    "ahead": r"\b(ahead|straight|forward|front|cent(er|re)|middle)\b|frente|centro|前|正面|中",
}

ON = (
    r"\b(on top of|onto|on)\s+(the\s+)?(?={c})|\b(sobre|em cima d[oae])\s+([oa]\s+)?\w*\s*(?={c})"
    r"|(?:{c})[^,.;]{{0,8}}?(上|うえ)"
)
NEXT = (
    r"\b(next to|beside|by|near)\s+(the\s+)?(?={c})"
    r"|\b(ao lado d[oae]|perto d[oae])\s+\w*\s*(?={c})"
    r"|(?:{c})[^,.;]{{0,8}}?(旁|边|隣|となり|横|そば)"
)
NAMED = re.compile(
    r"\b(?:called|named|labell?ed|titled|as|chamada|chamado|com o nome(?: de)?|nomeada)\b[\s:]*"
    r"|(?:叫做|叫|名为|名叫|命名为|取名)\s*"
)
NAMED_BEFORE = re.compile(r"([^\s「」、,。]{1,40}?)(?:という名前|と名付け|という)")
QUOTED = re.compile(r"[\"“”「『]([^\"“”」』]+)[\"“”」』]|'([^']+)'(?!\w)")
NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])([-−]?\d+(?:\.\d+)?)\s*(mm|cm|m\b|毫米|厘米|米|センチ|ミリ)?", re.I
)
UNITS = {"mm": 0.001, "毫米": 0.001, "ミリ": 0.001, "cm": 0.01, "厘米": 0.01, "センチ": 0.01}
ENDS = re.compile(
    r"[。;!?！？\n]|\.(?!\d)|[,、](?!\s*[-−]?\d)"
    r"|\b(?:and then|and|then|afterwards|e depois|depois|então|e)\b"
    r"|然后|之后|接着|再|并且|并|そして|それから|その後|そのあと"
    r"|(?<=んで)|(?<=[っいてし]て)|(?=放)"
)
PORTUGUESE = re.compile(
    r"[ãõçâêô]|\b(pegue|pega|pegar|agarre|apanhe|segure|levante|coloque|coloca|ponha|largue|solte|"
    r"deixe|olhe|olha|vire|tire|foto|diga|fale|pare|onde|quanto|mova|leve|cubo|esquerda|direita|"
    r"cima|baixo|mesa|vermelho|azul|verde|amarelo|olá|oi|encontre|procure)\b"
)

TEXTS = {
    "en": {
        "done": "Done.",
        "failed": "That did not work: {0}",
        "cannot": "This robot has no tool {0}, so I can't do that.",
        "where": "Where is it? Give me a place in metres, such as: pick it up at 0.22, 0.05.",
        "goal": "Where should it go? Say for example: put it at 0.2, -0.1.",
        "unseen": "I don't see {0}. I see: {1}.",
        "which": "Which one? I see: {0}.",
        "thing": "such a thing",
        "nothing": "nothing",
        "see": "I see: {0}.",
        "at": "{0} at {1}",
        "hello": "Hello. Tell me what to do, such as: pick up the red cube.",
        "help": "I am a policy of rules and understand commands such as: pick up the red cube; "
        "put it at 0.2, -0.1; look left; take a picture called desk; say hello; where is the blue "
        "cube; stop.",
    },
    "pt": {
        "done": "Pronto.",
        "failed": "Não deu certo: {0}",
        "cannot": "Este robô não tem a ferramenta {0}; não posso fazer isso.",
        "where": "Onde está? Diga o lugar em metros, por exemplo: pegue em 0.22, 0.05.",
        "goal": "Onde devo colocar? Por exemplo: coloque em 0.2, -0.1.",
        "unseen": "Não vejo {0}. Vejo: {1}.",
        "which": "Qual deles? Vejo: {0}.",
        "thing": "isso",
        "nothing": "nada",
        "see": "Vejo: {0}.",
        "at": "{0} em {1}",
        "hello": "Olá. Diga o que fazer, por exemplo: pegue o cubo vermelho.",
        "help": "Sou uma política de regras. Entendo, por exemplo: pegue o cubo vermelho; coloque "
        "em 0.2, -0.1; olhe para a esquerda; tire uma foto chamada mesa; diga olá; pare.",
    },
    "zh": {
        "done": "完成了。",
        "failed": "没有成功：{0}",
        "cannot": "这台机器人没有工具 {0}，做不到。",
        "where": "它在哪里？请用米说出位置，例如：抓取 0.22, 0.05 处的方块。",
        "goal": "放到哪里？例如：放到 0.2, -0.1。",
        "unseen": "我没有看到{0}。我看到：{1}。",
        "which": "哪一个？我看到：{0}。",
        "thing": "这样的东西",
        "nothing": "什么也没有",
        "see": "我看到：{0}。",
        "at": "{0}，位置 {1}",
        "hello": "你好。请告诉我做什么，例如：抓住红色方块。",
        "help": "我是规则策略，能听懂例如：抓住红色方块；放到 0.2, -0.1；向左看；"
        "拍一张照片，叫桌子；说你好；停下。",
    },
    "ja": {
        "done": "できました。",
        "failed": "うまくいきませんでした：{0}",
        "cannot": "このロボットには {0} がないので、できません。",
        "where": "どこにありますか。例：0.22, 0.05 のキューブをつかんで。",
        "goal": "どこに置きますか。例：0.2, -0.1 に置いて。",
        "unseen": "{0}が見えません。見えるもの：{1}。",
        "which": "どれですか。見えるもの：{0}。",
        "thing": "そのようなもの",
        "nothing": "何もありません",
        "see": "見えるもの：{0}。",
        "at": "{0}（{1}）",
        "hello": "こんにちは。例えば「赤いキューブをつかんで」と言ってください。",
        "help": "ルールの方策です。例：赤いキューブをつかんで；0.2, -0.1 に置いて；左を見て；"
        "「机」という名前の写真を撮って；「こんにちは」と言って；止まれ。",
    },
}  # fmt: skip
