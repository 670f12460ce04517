"""Wordings in which people state facts about themselves: rows of a key and patterns of a whole clause.

The group ``what`` is the fact's value, ``who`` names the key where a row has none ("my wife's name is Ilse").
"""

from __future__ import annotations

import re

from msgspec import Struct

from gateway.memory.learning.statements import UPPER
from gateway.memory.learning.values import (
    HOMES,
    NO_ALLERGY,
    NO_NAME,
    NO_PLACE,
    NO_VEHICLE,
    NO_WORKPLACE,
    PLACED,
    UNCLEAR,
)

# The writer as subject, with adverbs; in Vietnamese, words that mean others too are only tried where a verb follows.
SUBJECT_VI = r"(?:tôi|mình|tớ|tao|tui|mk|mik|em|anh|chị|con)"
_ADVERBS = (
    r"(?: (?:also|actually|currently|now|just|really|still|mostly|usually|always|only|do|did|recently|finally|"
    r"absolutely|totally|both|very|highly|severely|badly|slightly|originally|strictly|happily|mainly|kinda))*"
)
_I = rf"(?:i|we)(?:['’]?ve| have)?{_ADVERBS}"
_AM = rf"(?:i['’]?m|i am|we['’]?re|we are){_ADVERBS}"
_MY = r"(?:my|our)(?: (?:own|new|current|full|first|real))*"
_VI = rf"(?:nhà )?{SUBJECT_VI}(?: (?:bị|đang|vẫn|mới|vừa|thì|rất|cực|siêu|hơi|cũng|hay|chỉ|đã|sẽ luôn|thường|chủ yếu))*"
_NOT = r"(?:don['’]?t|do not|never|can['’]?t|cannot|can not|no longer)(?: really| actually| ever)*"
_NOT_VI = r"(?:không|ko|hông|hong|chẳng|chả)(?: thể)?"
_PLEASE = r"(?:(?:please|pls|plz|always|from now on|just|only|in future|từ giờ|từ nay|hãy|cứ|luôn|xin|nhớ|làm ơn),? )*"
_WHAT = r"(?P<what>.+)"
# "in a flat", but not "in a comedy": a thing of many is a home only if its word says so.
_DWELLING = (
    r"(?!(?:an?|the|my|your|constant|fear|hope) "
    rf"(?!.*\b(?:{HOMES}|state of (?-i:[A-Z])|(?-i:[A-Z])\w+)\b))"
)
_CAPITAL = rf"(?-i:[{UPPER}])[\w'’-]*"
_PROPER = rf"(?P<what>{_CAPITAL}(?: {_CAPITAL}){{0,3}})"
_NAME = rf"(?P<what>[^\W\d_][\w'’-]*(?: {_CAPITAL}){{0,3}})"
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*"
_LANGUAGE = (
    r"(?P<what>english|french|german|spanish|italian|portuguese|dutch|vietnamese|chinese|mandarin|cantonese|japanese|"
    r"korean|russian|ukrainian|polish|czech|swedish|norwegian|danish|finnish|turkish|arabic|hindi|thai|greek|hebrew)"
)
_PROFESSION = (
    r"(?P<what>(?:[\w-]+ ){0,3}?(?:nurse|doctor|surgeon|vet|veterinarian|teacher|tutor|professor|lecturer|student|"
    r"engineer|developer|dev|programmer|designer|architect|lawyer|accountant|baker|chef|cook|waiter|waitress|barista|"
    r"bartender|driver|pilot|mechanic|electrician|plumber|carpenter|farmer|gardener|writer|author|journalist|editor|"
    r"translator|librarian|musician|singer|actor|actress|artist|painter|photographer|scientist|researcher|physicist|"
    r"chemist|biologist|psychologist|therapist|physiotherapist|dentist|pharmacist|paramedic|midwife|consultant|"
    r"manager|analyst|administrator|sysadmin|secretary|clerk|cashier|hairdresser|barber|tailor|soldier|firefighter|"
    r"police officer|salesperson|economist|historian|mathematician|statistician|technician|freelancer|contractor|"
    r"entrepreneur|founder|postdoc|intern|apprentice|illustrator|postman|receptionist|butcher|florist|bricklayer|"
    r"roofer|welder|joiner|locksmith|optician|radiographer|surveyor|solicitor|paralegal|auditor|"
    r"bookkeeper|composer|violinist|cellist|pianist|dancer|sculptor|potter|geologist|botanist|astronomer|nanny|"
    r"childminder|carer|caretaker|cleaner|gardener|landscaper|fisherman|sailor|beekeeper|social worker|care worker|"
    r"lễ tân|lái xe|bảo vệ|thu ngân|phục vụ|hướng dẫn viên|phiên dịch|biên dịch|"
    r"kỹ sư|giáo viên|giảng viên|bác sĩ|y tá|điều dưỡng|sinh viên|"
    r"học sinh|lập trình viên|kế toán|nhân viên|công nhân|thợ|đầu bếp|luật sư|dược sĩ|nha sĩ|tài xế|nông dân|nhà báo|"
    r"nhà văn|họa sĩ|ca sĩ|kiến trúc sư|nội trợ)\b.*)"
)
_BUSINESS = (
    r"(?P<what>(?:[\w-]+ ){0,3}?(?:bakery|shop|store|caf[eé]|restaurant|company|business|farm|studio|agency|startup|"
    r"clinic|hotel|bar|salon|school|workshop|brewery|gallery|pharmacy)\b.*)"
)
_ILLNESS = (
    r"(?P<what>(?:type [12] )?diabetes|asthma|adhd|epilepsy|migraines?|arthritis|hypertension|high blood pressure|"
    r"celiac(?: disease)?|crohn['’]?s(?: disease)?|dyslexia|tinnitus|eczema|an(?:a)?emia|hay fever|ibs|lupus|"
    r"insomnia|psoriasis|"
    r"gout|sciatica|glaucoma|endometriosis|osteoporosis|sleep apn(?:o)?ea|tiểu đường|hen suyễn|cao huyết áp|"
    r"huyết áp cao|"
    r"viêm xoang|viêm mũi|đau dạ dày|trào ngược|mất ngủ|đau nửa đầu|thoái hóa khớp|suy thận)"
)
_ONE = r"(?P<who>wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|mom|mum|mother|dad|father)"
_OF_SEVERAL = r"(?P<who>son|daughter|kid|brother|sister|dog|cat|puppy|kitten|hamster|rabbit|parrot|horse)"
_ONE_VI = r"(?P<who>vợ|chồng|bạn gái|bạn trai|mẹ|bố)"
_OF_SEVERAL_VI = r"(?P<who>con gái|con trai|anh trai|chị gái|em trai|em gái|con chó|con mèo|chó|mèo)"
_NUMBER = r"(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|twin|\d{1,2})"
_NUMBER_VI = r"(?:một|hai|ba|bốn|năm|sáu|\d{1,2})"
_COUNTED = (
    r"(?P<what>dogs?|cats?|puppy|puppies|kittens?|hamsters?|rabbits?|parrots?|horses?|chickens?|kids?|child|children|"
    r"sons?|daughters?|brothers?|sisters?|siblings?|twins)"
)
_DEVICE = (
    r"(?P<who>backend|back end|frontend|front end|stack|database|db|framework|editor|ide|shell|distro|laptop|keyboard|"
    r"package manager|build system|linter|compiler|server)"
)
_ATTRIBUTE = (
    r"(?P<who>time ?zone|pronouns|blood type|shoe size|height|nickname|nationality|religion|native language|"
    r"mother tongue|first language|job title)"
)
_GAME = (
    r"(?P<what>(?:the (?!fool|devil|victim|game|song|video|file|long|lottery|part|role|market)[\w-]+|football|soccer|"
    r"tennis|chess|guitar|piano|violin|cello|drums|bass|basketball|volleyball|badminton|golf|hockey|rugby|cricket|"
    r"table tennis|d&d|board games|video games|bóng đá|cầu lông|đàn|guitar|piano|cờ)\b.*)"
)
_STYLE = r"(?P<what>short|shorter|brief|briefly|concise(?:ly)?|detailed|simple|formal|informal|ngắn(?: gọn)?|chi tiết)"
_DO = r"(?:use|write|answer|reply|respond|give|call|explain|add|include|show|put|ask|format|indent|suggest|make)"
# Not "đang ở Vũng Tàu chơi hai ngày".
_STAYS_VI = r"(?!.*\b(?:đang ở|chơi|du lịch|công tác|họp|thăm|ghé|nghỉ|tạm|hôm nay|ngày)\b)"
_MANNER = (
    r"(?:emojis?|emoticons?|smileys?|jargon|markdown|bullet points?|headings?|tables?|abbreviations?|slang|"
    r"exclamation marks?|semicolons|em dashes)\b"
)
_CODE_LANGUAGE = (
    r"(?P<what>python|javascript|typescript|kotlin|java|swift|rust|golang|go|ruby|php|perl|scala|haskell|elixir|erlang|"
    r"clojure|lua|julia|c|c\+\+|c#|f#|ocaml|zig|dart|fortran|cobol|r|sql|bash)"
)
_LIKE = r"(?:like|love|enjoy|adore|prefer|hate|dislike|despise|detest|loathe)"


class Wording(Struct, frozen=True):
    """Patterns of a whole clause. With ``several``, each value has a key of its own; ``refused`` values are none."""

    key: str
    patterns: tuple[re.Pattern[str], ...]
    several: bool
    refused: re.Pattern[str]
    wanted: re.Pattern[str] | None = None  # in the value


def _row(
    key: str,
    *patterns: str,
    several: bool = False,
    refused: re.Pattern[str] | None = None,
    clear: bool = True,
    wanted: re.Pattern[str] | None = None,
) -> Wording:
    """A row; with ``clear``, values that are :data:`UNCLEAR` are refused too."""
    either = [each.pattern for each in (refused, UNCLEAR if clear else None) if each is not None]
    return Wording(
        key,
        tuple(re.compile(pattern, re.I) for pattern in patterns),
        several,
        re.compile("|".join(either) or r"(?!)", re.I),
        wanted,
    )


WORDINGS = (
    _row(
        "name",
        rf"{_MY} name(?:['’]?s| is) {_NAME}",
        rf"(?:my )?name(?:['’]?s| is) {_PROPER}",
        rf"(?:(?:please|pls|just|you can|from now on|everyone|people|my friends),? )*calls? me {_PROPER}(?: .*)?",
        rf"(?:please|pls|just|you can) call me {_NAME}",
        rf"(?:hi|hello|hey|hallo)(?: \w+)? (?:i['’]?m|i am|this is) {_PROPER}(?: (?:from|and) .*)?",
        rf"{_VI} tên(?: là)? {_NAME}",
        rf"tên(?: của)? {SUBJECT_VI}(?: là)? {_NAME}",
        rf"{_PLEASE}gọi {SUBJECT_VI} là {_NAME}",
        refused=NO_NAME,
    ),
    _row(
        "home_city",
        rf"{_I} (?:live|reside)(?: (?:alone|together|by myself|with .+?))? "
        rf"(?:in|near|(?:just )?outside) {_DWELLING}{_WHAT}",
        rf"{_AM} (?:based|living|located) (?:in|near|outside) {_WHAT}",
        rf"{_I} been living in {_WHAT}",
        rf"{_I} (?:moved|relocated)(?: (?:house|back|over|away|again|here))*(?: from .+?)? to {_WHAT}",
        rf"{_MY} (?:home|house|flat|apartment|place) is (?:now )?(?:in|near) {_WHAT}",
        rf"{_VI} (?:sinh )?sống(?: (?:ở|tại|trong))? {_WHAT}",
        rf"{_STAYS_VI}{_VI} (?:ở|chuyển|dọn)(?: (?:nhà|hẳn|về|vào|ra|lên|đến|tới|xuống|tại))* {_PROPER}(?: .*)?",
        rf"nhà(?: {SUBJECT_VI})? ở {_PROPER}(?: .*)?",
        refused=NO_PLACE,
        wanted=PLACED,
    ),
    _row(
        "hometown",
        rf"{_AM} from {_WHAT}",
        rf"i come from {_WHAT}",
        rf"{_MY} home ?town is {_WHAT}",
        rf"(?:quê {SUBJECT_VI}|{SUBJECT_VI} quê)(?: (?:ở|là|gốc))* {_PROPER}(?: .*)?",
        refused=NO_PLACE,
    ),
    _row(
        "birthday",
        rf"{_MY} (?:birthday|b-?day|birth ?date|date of birth)(?:['’]?s| is|:)(?: on)? (?P<what>.*(?:\d|{_MONTH}).*)",
        r"i was born on (?P<what>.*\d.*)",
        rf"sinh nhật(?: của)? {SUBJECT_VI}(?: (?:là|vào|ngày|rơi))* (?P<what>.*\d.*)",
        rf"{_VI} sinh ngày (?P<what>\d.*)",
    ),
    _row(
        "birth_year",
        rf"i was born in (?P<what>(?:\w+ )?\d{{4}})(?: in {_CAPITAL}.*)?",
        rf"{_VI} sinh năm (?P<what>\d{{4}})",
    ),
    _row(
        "birthplace",
        rf"i was born(?: and (?:raised|grew up))? in {_PROPER}(?: .*)?",
        rf"{_VI} sinh ra ở {_PROPER}",
    ),
    _row(
        "age",
        rf"{_AM} (?P<what>[1-9]\d)(?: ?(?:years? old|yo|y/o|yrs old))?",
        r"(?:i )?(?:just )?turned (?P<what>[1-9]\d)(?: (?:today|yesterday|last \w+|this \w+))?",
        rf"{_VI}(?: năm nay)? (?P<what>[1-9]\d) tuổi",
    ),
    _row(
        "allergy",
        rf"{_AM} allergic (?:to|2) {_WHAT}",
        r"i(?:['’]?ve got| have|['’]?ve) (?:an? )?(?:\w+ly |bad |severe )?(?P<what>[\w-]+(?: [\w-]+)?) allergy",
        rf"{_VI} dị ứng(?: (?:với|nặng))* {_WHAT}",
        several=True,
        refused=NO_ALLERGY,
    ),
    _row(
        "diet",
        rf"{_AM}(?: an?)? (?P<what>vegetarian|vegan|pescatarian|c[o]?eliac|lactose[- ]intolerant|gluten[- ]intolerant)",
        rf"{_I} eat (?P<what>halal|kosher|vegan|vegetarian|gluten[- ]free)(?: only)?",
        rf"{_VI} ăn (?P<what>chay(?: trường)?)",
    ),
    _row(
        "diet",
        rf"{_I} {_NOT} (?:eat|drink|tolerate) (?!(?:my|your|the|breakfast|lunch|dinner|supper|much|enough|well|"
        rf"out|late|alone|there|here|at|before|after|in|with|from|on|for|any ?more$)\b){_WHAT}",
        rf"{_I} (?:eat|drink) (?P<what>.+?) (?:again|now)",
        rf"{_VI} {_NOT_VI} (?:ăn|uống)(?: được)? {_WHAT}",
        several=True,
    ),
    _row(
        "health",
        rf"{_I}(?: (?:have|got|suffer from))* (?:an? )?{_ILLNESS}",
        rf"{_AM} (?P<what>diabetic|asthmatic|colou?r[- ]?blind|dyslexic|left-handed|"
        r"hard of hearing|(?:deaf|blind) in (?:one|my left|my right) (?:ear|eye))",
        rf"{_VI}(?: bị)? (?:bệnh )?{_ILLNESS}(?: (?:mấy|nhiều|từ|lâu|được|\d+) .*)?",
        several=True,
    ),
    _row(
        "job",
        rf"{_AM}(?: working as)? an? {_PROFESSION}",
        rf"{_I} work(?:ed|ing)?(?: (?:part[- ]time|full[- ]time|freelance))? as (?:an? )?{_WHAT}",
        rf"{_MY} (?:job|profession|occupation) is (?:an? )?{_PROFESSION}",
        rf"{_I} (?:run|own) (?:an? )?{_BUSINESS}",
        rf"{_I} teach {_WHAT}",
        rf"{_AM} (?P<what>retired|unemployed|self-employed)",
        rf"{_I} (?P<what>\w+ .+) for a living",
        rf"{_VI} (?:là|làm)(?: (?:nghề|một))* {_PROFESSION}",
    ),
    _row(
        "workplace",
        rf"{_I} work(?: (?:part[- ]time|full[- ]time|nights|weekends|shifts))? (?:at|for|in) {_WHAT}",
        rf"{_I} work from (?P<what>home.*)",
        rf"{_VI} làm(?: việc)? (?:ở|tại|cho) {_WHAT}",
        refused=NO_WORKPLACE,
        wanted=PLACED,
    ),
    _row("volunteering", rf"{_I} volunteer (?:at|for|with|in) {_WHAT}", several=True),
    _row(
        "studies",
        rf"{_AM} (?:studying|majoring in) {_WHAT}",
        rf"{_I} (?:study|studied|majored in) (?P<what>(?!the|your|for|all|hard|how).+)",
        rf"{_VI} (?:theo )?học (?P<what>(?:năm|ngành|khoa|đại học|trường|lớp|chuyên ngành) .+)",
    ),
    _row("speaks", rf"{_I} speak (?:fluent |native |some |a little )?{_LANGUAGE}(?: .*)?", several=True),
    _row(
        "skill",
        rf"{_AM} (?:learning|new to|good at|bad at|fluent in) {_WHAT}",
        rf"{_VI} (?:code|lập trình)(?: (?:bằng|chủ yếu))* {_PROPER}(?: .*)?",
        rf"{_VI} {_NOT_VI} rành {_WHAT}",
        rf"{_VI} học (?P<what>tiếng \w+(?: .*)?)",
        rf"{_I} (?:write|code)(?: in)?(?: mostly| mainly)? {_CODE_LANGUAGE}(?: (?:at|for|these) .*)?",
        several=True,
    ),
    _row(
        "",
        rf"{_MY} {_ONE}(?:['’]?s name is| is called| is named|,)? {_PROPER}(?: .*)?",
        rf"{_MY} {_ONE}(?:['’]?s name is| is called| is named) {_NAME}",
        rf"{_ONE_VI}(?: của)?(?: {SUBJECT_VI})? tên(?: là)? {_NAME}(?: .*)?",
        rf"{_MY} {_ATTRIBUTE} (?:is|are) {_WHAT}",
        refused=NO_NAME,
    ),
    _row(
        "",
        rf"{_MY}(?: (?:older|younger|little|big|eldest|youngest|old))? {_OF_SEVERAL}"
        rf"(?:['’]?s name is| is called| is named|,)? {_PROPER}(?: .*)?",
        rf"{_MY} {_OF_SEVERAL}(?:['’]?s name is| is called| is named) {_NAME}",
        rf"{_OF_SEVERAL_VI}(?: của)?(?: {SUBJECT_VI})? tên(?: là)? {_NAME}(?: .*)?",
        several=True,
        refused=NO_NAME,
    ),
    _row("", rf"{_MY} {_DEVICE} (?:is|runs on|uses) (?P<what>(?:an? |(?-i:[A-Z])).+)"),
    _row(
        "",
        rf"{_MY} {_ONE} is (?:an? )?{_PROFESSION}",
        rf"{_ONE_VI}(?: của)? {SUBJECT_VI} (?:(?:là|làm|nghề|một) )*{_PROFESSION}",
        several=True,
    ),
    _row(
        "has",
        rf"{_I}(?: (?:have?|own|got))? {_NUMBER} (?:[\w-]+ ){{0,2}}?{_COUNTED}"
        r"(?: (?:named|called|with|who|at home) .*)?",
        rf"{_I}(?: (?:have?|own|got))? an? (?P<what>[\w -]{{2,40}}? (?:named|called) {_CAPITAL})",
        rf"{_VI} (?:có |nuôi )+{_NUMBER_VI} (?:đứa |bé |chú )?(?P<what>con (?:gái|trai|mèo|chó)|con|mèo|chó)(?: .*)?",
        several=True,
        clear=False,
    ),
    _row(
        "vehicle",
        rf"{_I} (?:drive|ride) an? {_WHAT}",
        rf"{_MY} (?:car|bike|motorbike|motorcycle) is an? {_WHAT}",
        rf"{_VI} (?:đi|chạy|lái) xe (?P<what>(?-i:[A-Z]).*)",
        refused=NO_VEHICLE,
    ),
    _row(
        "uses",
        rf"{_I} use (?P<what>.+?) (?:on (?:an?|my)|at (?:work|home)|as my|every ?day|for (?:work|everything))\b.*",
        r"we use (?P<what>(?-i:[A-Z]).*)",
        r"(?:we['’]?re|we are) on (?P<what>(?-i:[A-Z])[\w.+#-]* \d[\w.]*)",
        rf"{_VI} dùng (?P<what>(?-i:[A-Z]).*)",
        several=True,
    ),
    _row(
        "habit",
        rf"{_I} (?:quit|gave up|stopped) (?P<what>smoking|drinking|vaping|gambling)(?: .*)?",
        rf"{_I} {_NOT} (?P<what>smoke|drink|drive|vape)",
        several=True,
    ),
    _row("hobby", rf"{_I} play {_GAME}", rf"{_VI} (?:chơi|đánh) {_GAME}", several=True),
    _row(
        "marital_status",
        rf"{_AM} (?P<what>married|divorced|widowed|engaged|single)(?: (?:to|with) (?!my).*)?",
    ),
    _row(
        "preference",
        rf"{_I} {_LIKE} (?!a (?:good|nice) ){_WHAT}",
        rf"{_I} {_NOT} (?:like|love|enjoy) {_WHAT}",
        rf"{_I} (?:can['’]?t|cannot) stand (?!up|still|here|on|in|at|next)(?P<what>.+)",
        rf"{_AM}(?: not)?(?: an?)?(?: (?:big|huge|great))? fan of {_WHAT}",
        rf"{_AM} (?:fond of|into|tired of) {_WHAT}",
        rf"{_VI}(?: {_NOT_VI})? (?:thích|yêu|mê|khoái|ghét) {_WHAT}",
        several=True,
    ),
    _row("", r"my (?P<who>favou?rite [\w ]{3,20}?) (?:is|are) (?P<what>.+)"),
    _row(
        "reply_language",
        rf"{_PLEASE}(?:answer|reply|respond|write|speak|talk)(?: to)?(?: me)?(?: only)? in {_LANGUAGE}(?: .*)?",
        rf"{_PLEASE}(?:trả lời|nói chuyện|nói|viết)(?: với)?(?: {SUBJECT_VI})? bằng (?P<what>tiếng \w+)(?: .*)?",
        clear=False,
    ),
    _row(
        "reply_style",
        rf"{_PLEASE}(?:keep|make) (?:your |the |all )?(?:answers?|repl(?:y|ies)|responses?) {_STYLE}(?: .*)?",
        rf"{_PLEASE}(?:answer|reply|respond)(?: me)? {_STYLE}(?: .*)?",
        rf"{_PLEASE}{_STYLE} (?:answers|replies)(?: .*)?",
        rf"{_PLEASE}trả lời(?: {SUBJECT_VI})?(?: cho)? {_STYLE}(?: .*)?",
        clear=False,
    ),
    _row(
        "instruction",
        rf"(?:(?:please|pls|from now on),? )*(?:always|never) (?P<what>{_DO}\b.+)",
        rf"(?:from now on|in future),? (?:please |pls )?(?P<what>{_DO}\b.+)",
        rf"{_PLEASE}(?:don['’]?t|do not|stop) (?P<what>us(?:e|ing) {_MANNER}.*)",
        rf"{_PLEASE}(?:don['’]?t|do not|stop) (?P<what>(?:suggest|recommend|propos|apologi[sz]|call)(?:e|ing)?\b .+)",
        rf"{_PLEASE}đừng (?P<what>gọi {SUBJECT_VI} là .+)",
        r"(?:luôn|luôn luôn|đừng bao giờ) (?P<what>(?:dùng|viết|trả lời|gọi|giải thích|xưng) .+)",
        several=True,
        clear=False,
    ),
    _row(
        "trip",
        rf"{_AM} (?:flying|travell?ing|going|heading) to {_PROPER}(?=.*\b(?:\d|{_MONTH})).*",
        several=True,
    ),
)
