"""Values that a stated fact has, or has not: places, and words that speak of something else."""

from __future__ import annotations

import re

from gateway.memory.learning.statements import UPPER

HOMES = (
    r"town|city|village|suburbs?|hamlet|house|home|cottage|cabin|flat|apartment|studio|condo|room|loft|dorm|hostel|tent|"
    r"van|boat|houseboat|trailer|farm|barn|mill|castle|commune|place|area|region|district|neighbou?rhood|street|province|"
    r"country(?:side)?|county|(?:north|south|east|west)(?:ern)?|cent(?:er|re)|middle|outskirts|mountains|hills|woods|desert|"
    r"valley|island|coast"
)
# Small letters that may be a place: one word that is no plural, or a kind of place or employer.
PLACED = re.compile(
    rf"(?-i:[{UPPER}])\w|^[^\W\d]+(?<!s)$|^(?:paris|brussels|texas|wales|athens|naples|dallas|las vegas)$|"
    rf"\b(?:{HOMES}|"
    r"company|firm|startup|agency|bank|hospital|clinic|school|kindergarten|university|college|library|museum|office|shop|"
    r"store|bakery|caf[eé]|restaurant|bar|hotel|factory|plant|lab(?:oratory)?|institute|government|council|ministry|"
    r"police|army|navy|church|charity|ngo|airline|airport|railway|warehouse|supermarket|pharmacy|theat(?:re|er)|"
    r"newspaper|publisher|industry|sector|department|team|services?|care|sales|logistics|marketing|politics|robotics|"
    r"operations|resources|relations|communications|electronics|graphics|statistics|physics|sports|arts|nhà|quê|phố|"
    r"phường|quận|huyện|xã|tỉnh|thành|chung cư|căn hộ|ký túc|trọ|làng|thôn|"
    r"công ty|ngân hàng|bệnh viện|trường|quán|xưởng|"
    r"cửa hàng|tiệm|khách sạn|văn phòng|siêu thị|tổ chức|dự án|bưu điện|kho|sân bay|xí nghiệp)\b",
    re.I,
)

# Values that speak of the conversation, of somebody else, or of nothing in particular.
TALK = re.compile(
    r"\b(?:you|yours?|he|she|it|its|they|them|this|that|these|those|him|her|us|what|who|which|where|how|when|"
    r"(?:what|when|how|who)ever|(?:every|any|no|some)(?:thing|one|body)|bạn|nó|này|kia|đó|ấy|vậy|thế|"
    r"điều(?! (?:dưỡng|hòa|hoà|khiển|phối))|hắn|thì|"
    r"the (?:first|second|third|last|next|one|way|idea|other|latter|former|new|same))\b|"
    r"^(?:not|so|too|as|if|to be|like|"
    r"my life|one|both|all|another|more|fear|hope|peace|hell|denial|một (?:cái|chút)|được|là|cho|có|phải)\b",
    re.I,
)
UNCLEAR = re.compile(rf"\b(?:i|mình|tôi|tớ)\b|{TALK.pattern}", re.I)
NO_PLACE = re.compile(
    r"^(?:my|our|your|sin|limbo|chaos|misery|poverty|luxury|comfort|secret|silence|exile|danger|sợ|"
    r"constant|dreams?|night|pain|interesting|\d|linux|windows|mac\w*|neo?vim|vim|emacs|vs ?code|"
    r"react|vue|angular|svelte|rust|go|golang|python|java\w*|typescript|kotlin|swift|postgres\w*|mysql|sqlite|docker|"
    r"kubernetes|k8s|podman|aws|azure|gcp|github|gitlab|arch|ubuntu|debian|fedora|nix\w*|firefox|chrome|brave|"
    r"android|iphone|ios|pnpm|npm|yarn|poetry|uv|the (?:cloud|left|right|front|back|top|end|office|future|past)|"
    r"a (?:dream|simulation|bubble|different|better)|scratch|nhà|văn phòng|công ty|trường|ngoài|trên|dưới|"
    r"trong|đây|đó|kia)\b",
    re.I,
)
NO_NAME = re.compile(
    r"^(?:(?-i:a|an|the)|later|back|when|if|at|on|in|tomorrow|tonight|today|soon|again|asap|crazy|maybe|old|whatever|not|"
    r"unknown|hard|easy|important|mud|there|here|being|is|was|by|for|pronounced|spelled|too|very|so|never|your|what|"
    r"now|anytime|sir|lazy|stupid|weird|biased)\b",
    re.I,
)
NO_ALLERGY = re.compile(
    r"^(?:mondays?|work|people|bullshit|nonsense|mornings?|meetings?|exercise|stupid\w*|getting up|"
    r"dậy sớm|đi làm|công việc|thứ hai|họp|người)\b",
    re.I,
)
NO_WORKPLACE = re.compile(
    r"^(?:night|the moment|last|free|first|now|once|all|general|theory|practice|peace|fun|food|money|nothing|exposure|"
    r"spite|love|a living|vui)\b",
    re.I,
)
NO_VEHICLE = re.compile(r"^(?:hard|bus|train|point|lot|bit|few)\b", re.I)
