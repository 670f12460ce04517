"""Words and signs by which a sentence tells a person, a time, a number, a reason, a place, or what must be."""

from __future__ import annotations

import re

from gateway.ask.text.synonyms import PAID_FOR
from gateway.base.patterns import any_case

REFERS = any_case(r"(?:this|it|these|they|that) (?!is\b)[a-z]+")
PLACE_TOLD = any_case(
    r"\b(?:in|at|near|on|between|ở|tại|trong|gần|thuộc) (?:[^\W\d_]+ ){0,2}(?-i:[A-ZÀ-ÖĐĂƠƯẠ-Ỹ])"
)
DENIES = any_case(r"\b(?:not|cannot|never|\w+n['’]t|không|chưa)\b")
REQUIRES = any_case(
    r"\b(?:must|needs?|needed|requires?|required|requirements?|minimum|at least|no(?:t)? (?:less|fewer|smaller) than|"
    r"only (?:possible|if|with)|recommend(?:s|ed)?|should|cần|phải|ít nhất|tối thiểu)\b"
)
BECAUSE = any_case(
    r"\b(?:because|since|so that|so as|in order|due to|therefore|thus|hence|reasons?|purpose|goals?|aims?|aimed|"
    r"intended|meant|wanted|as a (?:joke|challenge|parody|result)|inspired|after|designed to|is why|causes?|caused|"
    r"leads? to|for (?:this|that)|makes? it|vì|do đó|nên)\b"
)
NO_ROW = any_case(r"(?:no|not|non|without)\b")  # a row about what is missing: "No desktop | 256 MB"
# A person is named in two words, before a verb, after "by", or in a table's cell.
PERSON = re.compile(
    r"\b[A-Z][\w'’-]+ (?:[A-Z]\.? ?|(?:de|da|di|la|le|van|von|der|den) )*[A-Z]\w"
    r"|\b[A-Z]\w+,? (?:\w+ed|wrote|made|built|won)\b|\b(?:by|after)\s(?:[a-z]+\s){0,3}[A-Z]|[A-Z]\. ?[A-Z]\w| \| |\w: "
)
YEAR = re.compile(
    r"(?<![0-9])(?:1[0-9]|20)[0-9]{2}(?![0-9])|\b(?:AD|BCE?|CE) [0-9]{1,4}\b|\b[0-9]{1,5} ?(?:AD|BCE?|CE)\b"
)
# A day and a time of the day are no number of something.
DAY = re.compile(r"(?<![0-9])(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[012]?[0-9]:[0-5][0-9])(?![0-9])")
NUMBER = any_case(
    r"(?<![^\W\d_])[0-9]|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|"
    r"twenty|thirty|fou?rty|fifty|sixty|seventy|eighty|ninety|dozen|hundred|thousand|million|[0-9]+(?:st|nd|rd|th)|"
    r"third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|"
    r"hai|ba|bốn|sáu|bảy|tám|chín|mười|một (?:trăm|nghìn|ngàn|triệu|tỷ|tỉ|nửa))\b"
)
# "One of your partitions", "the other one" and "one may" are no number.
NO_ONE = any_case(
    r"\bone (?=(?:of|can|could|may|might|must|should|would|who|that)\b)"
    r"|(?:\b(?:the|this|that|any|each|which)|other) one\b"
)
DATE = any_case(
    rf"{YEAR.pattern}"
    r"|\b(?:[01]?[0-9]|2[0-3])[:.][0-5][0-9]\b|\b[0-9]{1,2} ?[ap]\.?m\b|\b[0-9]{1,2}(?:st|nd|rd|th)\b"
    r"|\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september"
    r"|october|november|december|spring|summer|autumn|winter|noon|midnight|mornings?|afternoons?|evenings?|nights?"
    r"|days?|weeks?|months?|hours?|minutes?|daily|weekly|monthly|yearly|annually|today|tomorrow"
    r"|tháng|ngày|tuần|giờ|sáng|trưa|chiều|tối|đêm|mùa|năm [0-9])\b"
)
CLAUSE_OF_TIME = any_case(
    r"\b(?:after(?:wards)?|before|until|till|since|once|when(?:ever)?|as soon as|as long as|if|while|during|always"
    r"|never|khi|trước|sau)\b"
)
NONE = any_case(r"\b(?:infinite(?:ly)?|unlimited|single|no|none|both|vô hạn|duy nhất|chỉ (?:có )?một)\b")
# What stands behind a number that says how long or how far: the unit, not "3600 and 3800".
UNIT = re.compile(r"[0-9]*(?:[.,][0-9]+)*(?:st|nd|rd|th)?[ \u00a0-]?([^\W\d_]+|[%°\"″′])")
PART = any_case(
    r"%|\bper ?cent\b|\b(?:half|thirds?|quarters?|fifths?|tenths?)\b|\bphần (?:trăm|hai|ba|tư|năm|mười)\b|\bnửa\b"
)
# Not "free software" nor "free their time".
PRICE = any_case(
    r"[$€£¥]|\bfree(?= (?:of charge|admission|entry|entrance|and|at|for|if|in|on|until|when|with)\b|[^\w\s]|\Z)"
    rf"|\bgratis\b|{PAID_FOR}"
)
UTMOST = any_case(
    r"\b(?:most|least|best|worst|only|first|last|top|max\w*|min\w*|mostly|usually|than|more|less|\w{2,}est)\b"
)
# A sentence that tells how it was: "who was, at the time, the leader".
PAST = re.compile(
    r"\b(?:was|were|had been|at (?:the|that) time|former(?:ly)?|previous(?:ly)?|used to|until [A-Z0-9])\b"
)
PRESENT = any_case(r"\b(?:current(?:ly)?|now|today|at (?:the|this) moment|presently|still|since)\b")
# A sentence that asks answers nothing, alone or in a cell; a sign may be a question mark.
ASKS = re.compile(r"[^|]*\w\?|.* \| (?:[^\s|]+ ){4,}[^\s|]*\w\?")
