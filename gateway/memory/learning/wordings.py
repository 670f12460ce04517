"""Wordings in which people state facts about themselves: rows of a key and patterns of a whole clause.

The group ``what`` is the fact's value, ``who`` names the key where a row has none ("my wife's name is Ilse").
"""

from __future__ import annotations

import re

from msgspec import Struct

from gateway.base.patterns import LatePattern, any_case
from gateway.memory.learning import values
from gateway.memory.learning.statements import UPPER

# The writer as subject, with adverbs; in Vietnamese, words that mean others too are only tried where a verb follows.
SUBJECT_VI = r"(?:tôi|mình|tớ|tao|tui|mk|mik|em|anh|chị|con|e(?= (?:bị|đang|học|làm|là|ở|tên|dị)\b))"
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
_DATED = rf"(?P<what>.*(?:\d|{values.MONTH}).*)"
# "in a flat", but not "in a comedy": a thing of many is a home only if its word says so.
_DWELLING = (
    r"(?!(?:an?|the|my|your|constant|fear|hope) "
    rf"(?!.*\b(?:{values.HOMES}|state of (?-i:[A-Z])|(?-i:[A-Z])\w+)\b))"
)
# May follow a place: a time and companions.
_SINCE = (
    rf"(?: (?:(?:back )?in (?:{values.MONTH}|(?:19|20)\d\d|(?:the )?(?:summer|winter|spring|autumn|fall))|"
    r"last \w+|this \w+|(?:an?|one|two|three|four|five|six|\d+|(?:a )?few|(?:a )?couple(?: of)?) "
    r"(?:days?|weeks?|months?|years?|yrs?) ago|"
    r"recently|originally|since .+|with (?:my|our|an?|two|three|four|some) .+|these days|at the moment|atm|"
    r"for (?!an? (?:few |couple )?(?:of )?(?:days?|nights?|week|weekend)\b|the (?:weekend|day|night)|two |\d days).+))*"
)
_AWAY = r"(?: (?:house|back|over|away|again|here))*(?: from .+?)?"
_CAPITAL = rf"(?-i:[{UPPER}])[\w'’-]*"
_PROPER = rf"(?P<what>{_CAPITAL}(?: {_CAPITAL}){{0,3}})"
_NAME = rf"(?P<what>[^\W\d_][\w'’-]*(?: {_CAPITAL}){{0,3}})"
ONE = r"(?P<who>wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|mom|mum|mother|dad|father)"
OF_SEVERAL = r"(?P<who>son|daughter|kid|brother|sister|dog|cat|puppy|kitten|hamster|rabbit|parrot|horse)"
ONE_VI = r"(?P<who>vợ|chồng|bạn gái|bạn trai|mẹ|bố)"
_CALLED = r"(?:['’]?s (?:name(?: is|['’]?s)|called|named)| is called| is named| name is)"
_DOSE = r" (?:once|twice|three times|daily|every|each|in the|at night|for (?:my|the)|since|\d+ ?m).*"
_TITLED = (
    rf"(?:is )?(?:dr|doctor|mrs?|ms|miss|prof(?:essor)?|sir|frau|herr|cô|thầy|anh|chị|bác|chú)\.? {_PROPER}"
)
OF_SEVERAL_VI = r"(?P<who>con gái|con trai|anh trai|chị gái|em trai|em gái|con chó|con mèo|chó|mèo)"
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
# Not "đang ở Vũng Tàu chơi hai ngày" nor "chuyển vào Đà Nẵng từ tháng sau".
_STAYS_VI = (
    r"(?!.*\b(?:sẽ|sắp|(?:tuần|tháng|năm) (?:sau|tới)|đang ở|chơi|du lịch|công tác|họp|thăm|ghé|nghỉ|tạm|hôm nay|"
    r"ngày)\b)"
)
_MANNER = (
    r"(?:emojis?|emoticons?|smileys?|jargon|markdown|bullet points?|headings?|tables?|abbreviations?|slang|"
    r"exclamation marks?|semicolons|em dashes)\b"
)
_LIKE = r"(?:like|love|enjoy|adore|prefer|hate|dislike|despise|detest|loathe)"


class Wording(Struct, frozen=True):
    """Patterns of a whole clause. With ``several``, each value has a key of its own; ``refused`` values are none."""

    key: str
    patterns: tuple[LatePattern, ...]
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
    """A row; with ``clear``, values that are :data:`values.UNCLEAR` are refused too."""
    either = [each.pattern for each in (refused, values.UNCLEAR if clear else None) if each is not None]
    return Wording(
        key,
        tuple(LatePattern(pattern) for pattern in patterns),
        several,
        any_case("|".join(either) or r"(?!)"),
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
        rf"(?:hi|hello|hey|hallo)(?: there)? {_PROPER}(?<!['’]s) here",
        rf"{_VI} tên(?: là)? {_NAME}",
        rf"tên(?: của)? {SUBJECT_VI}(?: là)? {_NAME}",
        rf"{_PLEASE}gọi {SUBJECT_VI} là {_NAME}(?: cho \w+)?",
        refused=any_case(f"{values.NO_NAME.pattern}|{values.ORGANIZATION}"),
    ),
    _row(  # "mình là Khánh": one syllable with a capital, which jobs have not
        "name",
        rf"{SUBJECT_VI} là (?P<what>(?-i:(?=[{UPPER}]))(?:ngh?|[cgkpt]h|nh|tr|[bcdđghklmnpqrstvx])?[aeiouyà-ỹ]{{1,3}}"
        r"(?:ch|ng|nh|[cmnpt])?)",
        refused=any_case(r"(?:sếp|gay|nam giới|nữ|chủ|vợ|chồng|mẹ|má|ba|bố|con|lính|cô|thầy|bot|mod|ma)"),
    ),
    _row(
        "home_city",
        rf"{_I} (?:live|reside)(?: (?:alone|together|by myself|with .+?))? "
        rf"(?:in|near|(?:just )?outside) {_DWELLING}(?P<what>.+?){_SINCE}",
        rf"{_AM} (?:based|living|located) (?:in|near|outside) (?P<what>.+?){_SINCE}",
        rf"(?:i|we)(?:['’]?ve| have){_ADVERBS} (?:been living|lived) (?:in|near) (?P<what>.+?){_SINCE}",
        rf"i(?:['’]?ve| have)?{_ADVERBS} (?:moved|relocated){_AWAY} to (?P<what>.+?){_SINCE}",
        # "We moved to vite in March" is another move.
        rf"we(?:['’]?ve| have)?{_ADVERBS} (?:moved|relocated){_AWAY} to {_WHAT}",
        rf"{_MY} (?:home|house|flat|apartment|place) is (?:now )?(?:in|near) {_WHAT}",
        rf"{_VI} (?:sinh )?sống(?: (?:ở|tại|trong))? {_WHAT}",
        rf"{_STAYS_VI}{_VI} (?:ở|chuyển|dọn)(?: nhà)?(?: từ .{{2,30}}?(?= (?:về|vào|ra|lên|đến|tới|xuống|sang) ))?"
        rf"(?: (?:nhà|hẳn|về|vào|ra|lên|đến|tới|xuống|sang|tại))* {_PROPER}(?: .*)?",
        rf"nhà(?: {SUBJECT_VI})? ở {_PROPER}(?: .*)?",
        refused=values.NO_PLACE,
        wanted=values.PLACED,
    ),
    _row(
        "hometown",
        rf"{_AM} from {_WHAT}",
        rf"i come from {_WHAT}",
        rf"{_MY} home ?town is {_WHAT}",
        rf"(?:quê {SUBJECT_VI}|{SUBJECT_VI} quê)(?: (?:ở|là|gốc))* {_PROPER}(?: .*)?",
        refused=any_case(f"{values.NO_PLACE.pattern}|{values.ORGANIZATION}"),
    ),
    _row(
        "birthday",
        rf"{_MY} (?:birthday|b-?day|birth ?date|date of birth)(?:['’]?s| is|:)(?: on)? {_DATED}",
        r"i was born on (?P<what>.*\d.*)",
        rf"sinh nhật(?: của)? {SUBJECT_VI}(?: (?:là|vào|ngày|rơi))* (?P<what>.*\d.*)",
        rf"{_VI} sinh ngày (?P<what>\d.*)",
    ),
    _row(
        "",
        rf"{_MY} (?P<who>(?:wife|husband|partner|girlfriend|boyfriend|mom|mum|mother|dad|father|son|daughter|"
        rf"brother|sister)['’]?s (?:birthday|b-?day)|(?:wedding )?anniversary)(?:['’]?s| is|:)(?: on)? "
        rf"{_DATED}",
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
        rf"{_VI}(?: năm nay)? (?P<what>[1-9]\d) tuổi(?: (?:đầu|rồi))?",
    ),
    _row(
        "allergy",
        rf"{_AM} allergic (?:to|2) {_WHAT}",
        r"i(?:['’]?ve got| have|['’]?ve) (?:an? )?(?:\w+ly |bad |severe )?(?P<what>[\w-]+(?: [\w-]+)?) allergy",
        rf"{_VI} dị ứng(?: (?:với|nặng))* {_WHAT}",
        several=True,
        refused=values.NO_ALLERGY,
    ),
    _row(
        "diet",
        rf"{_AM}(?: an?)? (?P<what>vegetarian|vegan|pescatarian|c[o]?eliac|lactose[- ]intolerant|gluten[- ]intolerant)"
        r"(?: (?:since|for (?:\w+ )?(?:years|months|weeks|ages)) ?.*)?",
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
        rf"{_I}(?: (?:have|got|suffer from))* (?:an? )?{values.ILLNESS}(?: (?:since|from|for) .*)?",
        rf"{_I}(?: (?:have|got))? (?:an? |two )?(?P<what>(?:(?!broken heart)"
        r"(?:bad|broken|weak|sore|injured|sprained|torn|dodgy|stiff|slipped|herniated|fractured|artificial|prosthetic|"
        rf"swollen|dislocated) (?:\w+ )?{values.BODY}))(?: (?:from|since|after|at|right) .*)?",
        rf"{_I} (?:been |got )?diagnosed with {_WHAT}",
        rf"{_VI} bị {values.DISEASE_VI} (?:từ (?:nhỏ|bé|lâu)|bẩm sinh|mãn tính|kinh niên|(?:mấy|nhiều|\d+) năm nay)",
        rf"{_AM} (?P<what>diabetic|asthmatic|colou?r[- ]?blind|dyslexic|left[- ]handed|"
        r"hard of hearing|(?:deaf|blind) in (?:one|my left|my right) (?:ear|eye))",
        rf"{_VI}(?: bị)? (?:bệnh )?{values.ILLNESS}(?: (?:mấy|nhiều|từ|lâu|được|type|tuýp|\d+) .*)?",
        several=True,
    ),
    _row(
        "medication",
        rf"{_I} take (?:\d+ ?(?:mg|mcg|µg) (?:of )?)?{values.MEDICINE}{_DOSE}",
        rf"{_AM} (?:on|taking) (?:\d+ ?(?:mg|mcg|µg) (?:of )?)?{values.MEDICINE}(?:{_DOSE})?",
        rf"{_VI} (?:uống|tiêm) {values.MEDICINE} (?:mỗi|hàng|hằng|ngày|\d+ (?:lần|viên)).*",
        several=True,
    ),
    _row(
        "job",
        rf"{_AM}(?: working as)? an? {values.PROFESSION}",
        rf"{_I}(?: been)? work(?:ed|ing)?(?: (?:part[- ]time|full[- ]time|freelance))? as (?:an? )?{_WHAT}",
        rf"as an? {values.A_PROFESSION},? "
        r"i(?:['’]m| am| work| have to| often| always| usually| mostly| never| see| deal)\b.*",
        rf"{_MY} (?:job|profession|occupation) is (?:an? )?{values.PROFESSION}",
        rf"{_I} (?:run|own) (?:an? )?{values.BUSINESS}",
        rf"{_I} teach {_WHAT}",
        rf"{_AM} (?P<what>retired|unemployed|self-employed)",
        rf"{_I} (?P<what>\w+ .+) for a living",
        rf"{_VI} (?:là|làm)(?: (?:nghề|một))* {values.PROFESSION}",
    ),
    _row(
        "workplace",
        rf"{_I} work(?: (?:part[- ]time|full[- ]time|nights|weekends|shifts))? (?:at|for|in) {_WHAT}",
        rf"{_I} work from (?P<what>home.*)",
        rf"{_VI} làm(?: việc)? (?:ở|tại|cho) {_WHAT}",
        refused=values.NO_WORKPLACE,
        wanted=values.PLACED,
    ),
    _row("volunteering", rf"{_I} volunteer (?:at|for|with|in) {_WHAT}", several=True),
    _row(
        "studies",
        rf"{_AM} (?:studying|majoring in) {_WHAT}",
        rf"{_I} (?:study|studied|majored in) (?P<what>(?!the|your|for|all|hard|how).+)",
        rf"{_VI} (?:theo )?học (?P<what>(?:năm|ngành|khoa|đại học|trường|lớp|chuyên ngành) .+)",
    ),
    _row(
        "speaks", rf"{_I} speak (?:fluent |native |some |a little )?{values.LANGUAGE}(?: .*)?", several=True
    ),
    _row(
        "skill",
        rf"{_AM} (?:learning|new to|good at|bad at|fluent in) {_WHAT}",
        rf"{_VI} (?:code|lập trình)(?: (?:bằng|chủ yếu))* {_PROPER}(?: .*)?",
        rf"{_VI} {_NOT_VI} rành {_WHAT}",
        rf"{_VI} học (?P<what>tiếng \w+(?: .*)?)",
        rf"{_I} (?:write|code)(?: in)?(?: mostly| mainly)? {values.CODE_LANGUAGE}(?: (?:at|for|these) .*)?",
        several=True,
    ),
    _row(
        "",
        rf"{_MY} {ONE}(?:{_CALLED}|,)? {_PROPER}(?: .*)?",
        rf"{_MY} {ONE}{_CALLED} {_NAME}",
        rf"{_MY} {values.PERSON}{_CALLED} (?:{_PROPER}(?: .*)?)",
        rf"{_MY} {values.PERSON}{_CALLED} {_NAME}",
        rf"{_MY} {values.PERSON} {_TITLED}(?: .*)?",
        rf"{ONE_VI}(?: của)?(?: {SUBJECT_VI})? tên(?: là)? {_NAME}(?: .*)?",
        rf"{values.PERSON_VI}(?: của)? {SUBJECT_VI} tên(?: là)?(?: (?:cô|thầy|chị|anh|bác))? {_PROPER}(?: .*)?",
        rf"{values.PERSON_VI}(?: của)? {SUBJECT_VI} là (?:cô|thầy|chị|anh|bác(?: sĩ)?|luật sư) {_PROPER}(?: .*)?",
        rf"{_MY} {_ATTRIBUTE} (?:is|are) {_WHAT}",
        refused=values.NO_NAME,
    ),
    _row(
        "",
        rf"{_MY}(?: (?:older|younger|little|big|eldest|youngest|old))? {OF_SEVERAL}"
        rf"(?:{_CALLED}|,)? {_PROPER}(?: .*)?",
        rf"{_MY} {values.PEOPLE}{_CALLED} {_PROPER}(?: .*)?",
        rf"{_MY} {OF_SEVERAL}{_CALLED} {_NAME}",
        rf"{_MY} {values.PEOPLE}{_CALLED} {_NAME}",
        rf"{OF_SEVERAL_VI}(?: của)?(?: {SUBJECT_VI})? tên(?: là)? {_NAME}(?: .*)?",
        rf"{OF_SEVERAL_VI}(?: của)? {SUBJECT_VI} là {_PROPER}",
        several=True,
        refused=values.NO_NAME,
    ),
    _row("", rf"{_MY} (?P<who>phone|tablet|computer|camera) is (?P<what>an? .+)", wanted=values.MODEL),
    _row("", rf"{_MY} {_DEVICE} (?:is|runs on|uses) (?P<what>(?:an? |(?-i:[A-Z])).+)"),
    _row(
        "",
        rf"{_MY} {ONE} is (?:an? )?{values.PROFESSION}",
        rf"{ONE_VI}(?: của)? {SUBJECT_VI} (?:(?:là|làm|nghề|một) )*{values.PROFESSION}",
        several=True,
    ),
    _row(
        "has",
        rf"{_I}(?: (?:have?|own|got))? {_NUMBER} (?:[\w-]+ ){{0,2}}?{_COUNTED}"
        r"(?: (?:named|called|with|who|at home) .*)?",
        rf"{_I}(?: (?:have?|own|got))? an? (?P<what>[\w -]{{2,40}}? (?:named|called) {_CAPITAL})",
        rf"{_VI} (?:có |nuôi )+(?P<what>con (?:mèo|chó) tên {_CAPITAL})(?: .*)?",
        rf"{_VI} (?:có |nuôi )+{_NUMBER_VI} (?:đứa |bé |chú )?(?P<what>con (?:gái|trai|mèo|chó)|con|mèo|chó)(?: .*)?",
        several=True,
        clear=False,
    ),
    _row(
        "vehicle",
        rf"{_I} (?:drive|ride) an? {_WHAT}",
        rf"{_MY} (?:car|bike|motorbike|motorcycle) is an? {_WHAT}",
        rf"{_VI} (?:đi|chạy|lái) xe (?P<what>(?-i:[A-Z]).*)",
        refused=values.NO_VEHICLE,
    ),
    _row(
        "uses",
        rf"{_I} use (?P<what>.+?) (?:on (?:an?|my|(?-i:[A-Z]\w+))|"
        r"at (?:work|home)|as my|every ?day|for (?:work|everything))\b.*",
        r"we use (?P<what>(?-i:[A-Z]).*)",
        r"(?:we['’]?re|we are) on (?P<what>(?-i:[A-Z])[\w.+#-]* \d[\w.]*)",
        rf"{_VI} dùng (?:(?:cái|chiếc|con|điện thoại|máy(?: tính| ảnh)?|laptop|trình duyệt) )*(?P<what>(?-i:[A-Z]).*)",
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
        rf"{_I} {_LIKE} (?!a (?:good|nice) |to (?:go by|be called) ){_WHAT}",
        rf"{_I} {_NOT} (?:like|love|enjoy) {_WHAT}",
        rf"{_I} (?:can['’]?t|cannot) stand (?!up|still|here|on|in|at|next)(?P<what>.+)",
        rf"{_AM}(?: not)?(?: an?)?(?: (?:big|huge|great))? fan of {_WHAT}",
        rf"{_AM} (?:fond of|into|tired of) {_WHAT}",
        rf"{_VI}(?: {_NOT_VI})? (?:thích|yêu|mê|khoái|ghét) {_WHAT}",
        several=True,
    ),
    _row(
        "",
        r"my (?P<who>favou?rite [\w ]{3,20}?) (?:is|are) (?P<what>(?!(?:on|in|at|over|out|off|about|back|gone|closed|"
        r"broken|missing|always|still)\b).+)",
    ),
    _row(
        "reply_language",
        rf"{_PLEASE}(?:answer|reply|respond|write|speak|talk)(?: to)?(?: me)?(?: only)? in "
        rf"(?:british |american |plain |simple )?{values.LANGUAGE}(?: .*)?",
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
        rf"{_AM} (?:flying|travell?ing|going|heading) to {_PROPER}(?=.*\b(?:\d|{values.MONTH})).*",
        several=True,
    ),
)
