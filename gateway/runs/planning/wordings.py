"""Wordings in English and Vietnamese from which steps are made."""

from __future__ import annotations

import re

from gateway.base.patterns import LatePattern, any_case
from gateway.runs.planning.when import TIME

_ME = r"(?:me|us|(?:cho )?(?:tôi|mình|em|anh|chị|chúng tôi))"
BEFORE = any_case(
    r"(?:(?:hey|hi|hello|ok|okay|now|first(?:ly)?|finally|next|also|and|then|afterwards|after that|please|"
    r"pls|plz|kindly|just|trước (?:hết|tiên)|sau đó|tiếp theo|và|rồi)\b,?\s+|"
    r"(?:can|could|would|will) you (?:please |kindly )?|i(?:['’]d| would) like you to |i want you to |go and |"
    r"hãy |làm ơn |vui lòng |xin |(?:bạn )?có thể |giúp (?:tôi|mình) )+"
)
AFTER = any_case(
    r"(?:[\s,.!?]+(?:please|pls|plz|thanks|thx|thank you|for me|cheers|nhé|nha|ạ|với|"
    r"(?:giùm|dùm|hộ|giúp)(?: (?:tôi|mình))?|"
    r"(?:vậy|thế|hả|nhỉ)(?=[\s,.!?]*$)))*[\s.!]*$"
)
PARTS = any_case(
    r"\s*(?:\n|;)\s*|(?:,|\.)?\s+(?:and then|then|and after that|after that|afterwards|rồi|sau đó)\s+(?=\w)|"
    r"(?<=\w\w\w)(?<!Mrs)(?<!Prof)(?<!etc)[.!?]\s+(?=\w)|(?<=\w)[?!]\s+(?=\w)"
)
AND = any_case(
    r"(?:,?\s+(?:and|n|&|và)|,)\s+(?=(?:also )?"
    r"(?:an?(?:other)? (?:alarm|timer|reminder)|remind|ping|notify|tell me|let me know|remember|save|store|note|"
    r"write (?:it|that|down)|jot|keep|compare|add|put|create|ask|search|look|find|read|open|show|fetch|wait|nhắc|"
    r"báo|ghi|lưu|thêm|hỏi|tìm|đọc|mở|chờ)\b)"
)
_WH = r"(?:who|whom|whose|what|when|where|which|why|how)(?:['’]?s|['’]re)?\b"
_AI = r"(?:ai|cái gì|gì|khi nào|năm nào|ở đâu|tại sao|vì sao|thế nào|như thế nào|bao nhiêu|mấy|cái nào)"
QUESTION = any_case(
    rf"{_WH}.*|[^?.]{{1,60}}[:,]\s*{_WH}.*\?|(?:is|are|was|were|does|did|do|has|have|had)\s(?!you).*\?|"
    rf".*\b{_AI}\b.*\?|(?:ai (?:đã|là|tạo|viết|làm|sáng|phát|nghĩ|thiết)|mấy giờ|tại sao|vì sao)\b.*|"
    rf".*\b(?:là|ở|vào) {_AI}|.*\b(?:do|bởi|của) {_AI}\b.*|"
    r".*\blàm gì|.*\b(?:ở đâu|khi nào|năm nào|thế nào|bao nhiêu)",
    re.S,
)
# The wiki knows nothing about the user.
PERSONAL = any_case(r"\b(?:i|i['’]\w+|me|my|mine|we|our|ours|us|you|your|tôi|mình|chúng tôi|bạn)\b")
LEARN = any_case(
    rf"(?:find out|figure out|work out|learn|look up|look into|dig up|tell {_ME}|teach {_ME}|check|research|"
    rf"let {_ME} know|explain(?: to {_ME})?|describe(?: to {_ME})?|show {_ME}|see|do you know|"
    r"i(?:['’]d| would) (?:like|love) to (?:know|learn)|i (?:want|need) to (?:know|learn)|"
    r"i(?:['’]m| am)? wonder(?:ing)?|"
    rf"cho {_ME} biết|{_ME} muốn biết|(?:tìm hiểu|tìm|tra|kiểm tra)(?: (?:ra|xem|thử))+|"
    rf"tìm hiểu|xem|giải thích(?: cho {_ME})?)\s+"
    r"(?P<question>.+?)(?:(?: and|,)? (?:tell|let) me(?: know)?)?",
    re.S,
)
TOPIC = any_case(
    rf"(?:tell {_ME}|learn|read up|find|find out|look for|search for|i want to (?:know|learn)|"
    r"i(?:['’]d| would) like to (?:know|learn)|give me)?\s*"
    r"(?:(?:something|anything|everything|more|all|information|info|some information)\s+)*"
    r"(?:about|on)\s+(?P<topic>[^?;,.]{2,80})|"
    r"(?:explain|describe|research|investigate|study|look into)\s+(?P<explained>[^?;,.]{2,80})|"
    r"what (?:does|do) (?:the )?wiki (?:say|know|tell)s? about\s+(?P<of_wiki>.+?)[?]?|"
    r"(?:tìm hiểu|tìm thông tin|đọc)\s+về\s+(?P<về>[^?;,.]{2,80})",
    re.S,
)
COMPARE = any_case(
    r"(?:compare|so sánh)\s+(?P<a>[^,;]{2,60}?)\s+(?:and|with|to|và|với)\s+(?P<b>[^,;]{2,60})|"
    r"what(?:['’]s| is) the difference between\s+(?P<c>[^,;]{2,60}?)\s+and\s+(?P<d>[^,;]{2,60}?)[?]?|"
    r"(?P<e>[^,;]{2,60}?)\s+(?:vs\.?|versus)\s+(?P<f>[^,;]{2,60})"
)
_OF_RESULT = (
    r"(?:it|that|this|them|(?:the|that|this) (?:answer|result|name|year|date|text)s?|what (?:it|that|this) is|"
    r"what you (?:find|found|learn)(?: out)?|everything|the (?:summary|comparison|explanation|overview)|"
    r"nó|lại|kết quả|câu trả lời)"
)
KEEP = (
    r"(?:remember|keep in mind|bear in mind|note(?: down)?|make a note|take a note|jot(?: down)?|write down|"
    r"memori[sz]e|save|store|record|keep|don['’]?t forget|"
    r"(?:ghi nhớ|nhớ|ghi lại|ghi chú|lưu(?: lại)?)(?: (?:giùm|dùm|hộ|giúp)(?: (?:tôi|mình|em|anh|chị))?)?)"
)
_TO_NOTES = (
    r"(?:(?:in|into|to|among|on|under) (?:(?:my|the|your) )?(?:notes?|memory|facts)|as an? (?:note|fact))"
)
_REMIND = (
    rf"(?:(?:remind|ping|nudge|alert|warn|message|notify|tell|wake) {_ME}(?: up)?|let {_ME} know|don['’]?t let {_ME} "
    rf"forget|don['’]?t forget|(?:nhắc|báo|gọi)(?: nhở)? {_ME})"
)
_SUMMARY_OF = r"(?:an? |the )?(?:[\w-]+ ){0,2}(?:summary|overview|explanation|description|definition) of\b"
_TELL = rf"(?:notify {_ME}|tell {_ME}|let {_ME} know|báo {_ME})"
_LIST = (
    r"(?:my|the|our)(?: (?:to-?do|task|shopping|day['’]s))?[ -]?(?:list|tasks|to-?dos)"
    r"(?: of (?:tasks|today))?(?: for today)?"
)
_TO = r"(?:to|that|about|of|for|:|rằng|là|về)"

# Though it has such a word.
GENERAL = any_case(r"how (?:do|can|could|to|would|should) (?:i|you|we)\b")

# A part of words that names a tool, the most particular first. The groups are arguments.
_NAMED: dict[str, tuple[str, ...]] = {
    "remind_at": (rf"(?P<text>{_REMIND})\s+{TIME}",),
    "wait_until": (rf"(?:wait|pause|hold on|chờ|đợi)(?:\s+(?:until|for|đến|trong))?\s+{TIME}",),
    "search_wiki": (
        r"(?:search|look in|browse) (?:the )?wiki (?:for|about)\s+(?P<query>.+)",
        r"(?:look up|look for|search for|find)\s+(?P<query>[^.;]{1,60}?) (?:in|on) the wiki",
        r"(?:tìm|tra cứu|tìm kiếm) (?:trên |trong )?wiki\s+(?:về )?(?P<query>.+)",
        r"(?:look up|tra(?: cứu)?(?: (?:giúp|giùm|dùm|hộ)(?: (?:tôi|mình))?)?)\s+"
        r"(?!who|what|when|where|which|why|how|(?:xem|thử|ra)\b)(?P<query>[^.;,?/]{2,60})",
    ),
    "ask_wiki": (
        r"(?:ask|check with|hỏi) (?:the )?wiki(?: about| xem| rằng| về)?\s*[:,]?\s+(?P<question>.+)",
    ),
    "search_code": (r"search (?:the )?(?:code|project|source)(?: of (?P<project>\S+))? for\s+(?P<query>.+)",),
    "callers_of": (
        r"(?:find |list |show )?(?:all |the )?callers of\s+(?P<name>[\w.]+)(?: in (?P<project>\S+))?",
        r"(?:find (?:out )?)?(?:who|what) calls\s+(?P<name>[\w.]+)(?: in (?P<project>\S+?))?[?]?",
    ),
    "read_file": (
        r"(?:read|show|open|đọc|mở) (?:the )?(?:file|tệp|tập tin)\s+(?P<path>[^\s]+?)(?: in (?P<project>\S+?))?",
    ),
    "http_get": (r"(?:fetch|get|download|load|read|open|tải)\s+(?P<url>https?://\S+)",),
    "notify": (
        rf"{_TELL}\s*(?:that\s*:?|:|rằng|là)\s+(?P<text>.+)",
        rf"{_TELL}\s*[:,]?\s+(?P<text>[\"“‘'].+[\"”’'])",
    ),
    "remember": (
        rf"{KEEP}\s*(?:that\b\s*:?|:|rằng|là)\s+(?!{_TO_NOTES}$)(?P<text>.+)",
        rf"{KEEP}\s+(?!to\b|{_OF_RESULT}\b|{_WH}[^:,]*$|{_SUMMARY_OF})(?P<text>.+?\s(?:is|are|was|has|have|likes?|lives?|là|có|thích|ở)\s.+)",
    ),
    "add_task": (
        r"(?:remember|don['’]?t forget|don['’]?t let me forget) to\s+(?P<title>.+)",
        r"(?:add|put|create|make|set up|write|i need|i have)\s+(?:an? |the |new |another )*(?:task|to-?do)"
        rf"(?: item)?(?: (?:to|on) {_LIST})?\s*(?:to|for|about|of|:|,|called|named)?\s+(?P<title>.+)",
        rf"(?:add|put|write)\s+(?:on|onto|to|in) {_LIST}\s*:?\s+(?P<title>.+)",
        r"(?:thêm|tạo|ghi)(?: một)?(?: công)? (?:việc|nhiệm vụ|mục)(?: mới)?(?: cần làm)?\s*(?::|là)?"
        r"\s+(?P<title>.+)",
        r"thêm\s+(?:vào danh sách(?: (?:công )?việc)?(?: cần làm)?)\s*:?\s+(?P<title>.+)",
    ),
}
NAMED = tuple((tool, LatePattern(words, re.S)) for tool, forms in _NAMED.items() for words in forms)
KEEP_RESULT = any_case(
    rf"(?:{KEEP}|write)\s+{_OF_RESULT}(?: down)?(?: for later)?(?: {_TO_NOTES})?|"
    rf"(?:add|put)\s+{_OF_RESULT} {_TO_NOTES}|"
    r"(?:ghi|lưu) lại|ghi (?:chú|nhớ)|(?:ghi|lưu)(?: (?:nó|lại))? vào (?:ghi chú|sổ(?: tay)?|bộ nhớ)"
)
TELL_AT_END = any_case(
    rf"{_TELL}\s+(?:(?:that|rằng|là)\s+)?(?!(?:if|whether|about|xem|nếu|{_WH}))(?P<text>.+)", re.S
)
ASKED_OF_STEPS = any_case(
    r"(?:(?:in (?:\w+ ){1,3}(?:sentences?|words?|lines?|points)|briefly|shortly|quickly),?\s+)?"
    rf"(?:if|whether|xem|{_WH}|mấy)\b.*",
    re.S,
)
TELL_RESULT = any_case(
    rf"(?:(?:tell|notify|show|give|message) {_ME}|let {_ME} know|báo {_ME})(?: (?:about )?{_OF_RESULT})?"
)
READ = any_case(
    r"(?:read|open|check|show|print|display|view|see|look|go|through|over|list|give|get|let|me|us|at|into|in|inside|what(?:['’]s)?|is|the|this|file|"
    r"content|contents|text|whole|of|does|say|says|out|find|all|please|from|project|có|gì|trong|đọc|mở|xem|tệp|nội|dung|của)"
    r"(?=\W|$)"
)
ABOUT_FILE = any_case(
    r"(?:according to|as (?:written|said) in|see|look(?: it up)? in|read|check|based on|theo|xem)\b|"
    r"\b(?:it|that|this|which|answer)(?:['’]s|\s+(?:is|should|must|can|says|stands|will))"
)
SUM_UP = any_case(
    r"(?:summari[sz]e|sum up|explain|describe|tóm tắt|giải thích)\b|"
    r"(?:(?:give|show|write|make)(?: me)? )?(?:an? |the )?(?:[\w-]+ ){0,4}(?:summary|overview|gist|outline) of\b"
)
USES = any_case(
    r".*?\b(?:calls?|uses?|using|calling|invokes?|depends? on|(?:usages?|uses|callers?|calls) of|gọi|dùng|goi|dung)\s+"
    r"(?:the (?:function|method|class) |hàm |ham )?(?P<used>[\w.]+)(?:\(\))?(?:\s+(?:in|trong) (?:the )?\S+?)?[?]?|"
    r"where is (?P<name>[\w.]+)(?:\(\))? (?:used|called)(?: in \S+?)?[?]?|"
    r"(?:hàm |lớp )?(?P<passive>[\w.]+)(?:\(\))? (?:được|đang) (?:gọi|dùng|sử dụng)(?: (?:bởi|ở|từ|trong)\b.*)?",
    re.S,
)
OF_CALLS = any_case(r"\b(?:calls?|called|callers?|uses?|used|invokes?|gọi|dùng)\b")
CODE = any_case(r"\b(?:code|codebase|functions?|method|class|module|source|repo|repository|hàm|mã nguồn)\b")
URL = re.compile(r"https?://\S+")
PATH = re.compile(r"[\w-][./]\w")
PRONOUN = any_case(r"\b(?:it|its|he|she|they|their|them|this|that|nó|the \w+ ones?)\b")
LEADING = any_case(rf"(?:\S+\s+){{1,3}}?{_TO}\s+")
SEARCH = any_case(
    r"(?:search|explain|describe|tell me|find out|look(?: in| into| at| for| through)?|find|check|see|show|list|"
    r"go through|where|which|what|how)\b"
)
CODE_ASKED = any_case(
    r"(?:search|look(?: in| into| at| through)?|find|check|see|show me|show|list|go through)\b\s*|"
    r"\b(?:where|which|what|how|is|are|do|does|we|the place|the|code|for|in|of|to|uses?|it)\b(?!\w)|[?.!,]"
)
# Notes to keep of a file that was read: "note down when it closes".
KEEP_ANSWER = any_case(rf"{KEEP}(?: down)?\s+(?P<question>(?:{_WH}|whether\b|xem\b|mấy\b).*)", re.S)
# Topics to look up and keep: "save a summary of what Piet is to my notes".
KEEP_FOUND = any_case(
    rf"{KEEP}(?: down)?\s+(?:(?P<question>{_WH}[^:,]+?)|{_SUMMARY_OF}\s+(?P<topic>.+?))(?:\s+{_TO_NOTES})?",
    re.S,
)
# Things to find in a file whose name stands for FILE.
IN_FILE = (
    r"(?:check|look (?:in|at|into|through)|search|read|open|see|go through|xem|đọc|mở|tìm trong|kiểm tra)\s+"
    r"(?:the |file |tệp )*FILE\s+(?:for|to (?:find|see|get|check)|xem|coi|để (?:xem|tìm|coi))\s+(?P<question>.+)|"
    r"(?:does|do|did)\s+(?:the |file )*FILE\s+(?:say|mention|tell|state|list|explain)(?: me| us)?\s+(?P<said>.+)|"
    r"(?:find|get|look up|look for|check|search for|tìm|tra|lấy)\s+(?P<wanted>.+?)\s+"
    r"(?:in|from|inside|trong|từ)\s+(?:the |file |tệp )*FILE"
)
_SPELLED = {
    "wat": "what", "wut": "what", "wats": "what's", "hu": "who", "hus": "who's", "wen": "when", "wich": "which",
    "wer": "where",
}  # fmt: skip
# At the beginning, or behind words such as "find out": elsewhere "Hu" may be a name.
_ASKED = any_case(
    rf"^(?P<before>(?:(?:find|figure|work) out|look up|check|see|tell me|save|note(?: down)?)\s+)?"
    rf"(?P<word>{'|'.join(_SPELLED)})(?=\s)"
)


def bare(part: str) -> str:
    """A part without words of politeness and order."""
    text = part.strip()
    before = BEFORE.match(text)
    text = AFTER.sub("", text[before.end() :] if before else text)
    return _ASKED.sub(lambda found: f"{found['before'] or ''}{_SPELLED[found['word'].lower()]}", text)
