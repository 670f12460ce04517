"""Whether a proposed fact or task follows from the statement that it quotes. Pure, for English and Vietnamese.

Models of any size invent. So each word of a fact is either in the quoted clause, or a function word, or names a
relation that the clause expresses with other words: "lives" follows from "I'm from Huế". When in doubt, it does not
follow: a fact that is missing costs less than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.base.stems import stem
from gateway.memory.learning.statements import NEGATION, UPPER, WORD, QuotedStatement, mistaken, stems
from gateway.memory.learning.values import TALK


class _Relation(Struct, frozen=True):
    """Words that keys and texts use for a relation, as stems, and what expresses it in a clause.

    One that has a single value has a ``key``.
    """

    words: frozenset[str]
    expressed: re.Pattern[str]
    key: str


def _relation(words: str, expressed: str, key: str = "") -> _Relation:
    return _Relation(frozenset(map(stem, words.split())), any_case(rf"\b(?:{expressed})\b"), key)


_RELATIONS = (
    _relation(
        "home house live lives city town country address location residence place reside resides hometown based flat "
        "apartment",
        "live|lives|living|moved|reside|based|home|hometown|address|from|flat|apartment|i am in|i['’]m in|"
        "sống|ở|quê|nhà",
        key="home_city",
    ),
    # "I'm Kaspar", but not "I'm dying".
    _relation(
        "name called nickname named",
        r"name|names|named|called|call me|(?:i am|i['’]m)(?=\s(?-i:[" + UPPER + r"]))|tên|gọi",
        key="name",
    ),
    _relation(
        "like likes love loves enjoy enjoys preference prefer prefers favourite favorite fan hobby interest",
        "like|love|enjoy|adore|fond of|make me happy|prefer|rather|favou?rite|fan|hobby|hobbies|into|thích|yêu|mê",
    ),
    _relation(
        "preference prefer prefers want wants style answer reply format language instruction instructions use avoid "
        "avoids",
        "please|always|never|don['’]t|do not|only|stop|avoid|use|answer|reply|write|keep|give|from now on|prefer|like|"
        "hate|đừng|hãy|luôn|chỉ|xin",
    ),
    # The negations of fact and clause agree, so this "like" is a "does not like".
    _relation(
        "dislike dislikes hate hates avoid avoids like likes",
        "hate|dislike|stand|tired of|annoys?|do(?:n['’]t| not) (?:really )?(?:like|care for)|no|ghét|không thích",
    ),
    _relation(
        "job work works working occupation profession employer company career",
        "work|works|working|job|employed|employer|profession|professionally|company|earn|living|sell|started at|"
        "trained|have been an?|i am an?|i['’]m an?|làm|nghề|công ty",
    ),
    _relation(
        "project work works develops",
        "develop|developing|maintain|busy with|work(?:ing)? on|build|building|project|dự án",
    ),
    _relation(
        "main language program programs programming code codes",
        "program|programs|programming|code in|coding|i write|language|lập trình",
    ),
    _relation("birthday born birth birthdate", "born|birthday|sinh|sinh nhật", key="birthday"),
    _relation(
        "age old years",
        "years old|age|aged|tuổi|i am [0-9]+|i['’]m [0-9]+|i['’]ll be [0-9]+|i turn(?:ed)? [0-9]+",
        key="age",
    ),
    _relation(
        "has have own owns owner owned possess",
        "have|has|had|own|owns|got|bought|my|our|có|mua|của tôi|của mình",
    ),
    _relation(
        "pet pets animal",
        "pet|pets|cat|cats|dog|dogs|kitten|puppy|parrot|hamster|rabbit|fish|mèo|chó|thú cưng",
    ),
    _relation(
        "plan plans planned planning intend intends travel trip going goes",
        "plan|planning|plans|going to|intend|will|['’]ll|['’]d like to|would like to|trip|travel|travelling|traveling|"
        "fly|flying|visit|định|sẽ|dự định|kế hoạch|đi",
    ),
    _relation("want wants wish need needs goal", "want|need|would like|['’]d like|would love|muốn|cần"),
    _relation("allergy allergies allergic", "allergic|allergy|allergies|dị ứng"),
    _relation(
        "diet dietary restriction food eat eats",
        "vegetarian|vegan|halal|kosher|gluten|lactose|diet|eat|ăn|chay|allergic|dị ứng",
    ),
    _relation(
        "married spouse marital wife husband partner",
        "married|wife|husband|spouse|partner|live with|vợ|chồng",
    ),
    _relation(
        "child children kid kids son daughter family",
        "child|children|kid|kids|son|daughter|con|con trai|con gái",
    ),
    _relation(
        "study studies student school university education learn learning learns",
        "study|studying|student|school|university|degree|learn|learning|lessons|classes|course|học|sinh viên",
    ),
    _relation("speak speaks language native", "speak|speaks|language|native|tiếng|nói"),
    _relation(
        "phone number contact email", "phone|telephone|number|email|mail|call me at|reach me|điện thoại|số"
    ),
)
_SINGLE = frozenset(relation.key for relation in _RELATIONS if relation.key)
_RELATION_WORDS = frozenset(word for relation in _RELATIONS for word in relation.words)
_FUNCTION_WORDS = frozenset(
    stem(word)
    for word in re.findall(
        r"\S+",
        """
        a an the this that these those of in on at to for from by with as and or but so is are was were be been am do
        does did will would has have had their they them he she his her its it user users person someone who which
        where when i me my we our us you your about into than then there here not no never don't doesn't didn't isn't
        aren't won't can't current currently mình tôi tớ em anh chị nhé nha nhỉ ạ
        người dùng là có và ở tại của không đừng được bị một các những này đó
        """,
    )
)
_FIRST_PERSON = any_case(r"\b(?:i|me|my|mine|myself|i['’](?:m|ve|d|ll)|tôi|mình|tớ|em|anh|chị|con|tao)\b")
_FIRST_PERSON_PLURAL = any_case(
    r"\b(?:we|our|us|we['’](?:re|ve|ll|d)|chúng tôi|chúng mình|bọn mình|nhà mình)\b"
)
_THIRD_PERSON = any_case(
    r"\b(?:he|she|they|his|her|him|their|anh ấy|anh ta|cô ấy|chị ấy|ông ấy|bà ấy|họ|nó)\b"
)
_INSTRUCTION = any_case(
    r"^\W*(?:and |but |so |then |oh |ok |okay )?(?:please|always|never|don['’]t|do not|only|answer|reply|respond|write|"
    r"use|keep|give|be|make|explain|call|speak|stop|avoid|remember|đừng|hãy|xin|luôn|chỉ|gọi|trả lời|viết|nhớ)\b"
)
# "phone: 17", as in a form.
_LABEL = any_case(
    r"^\W*(?:name|phone|telephone|email|address|birthday|born|job|age|city|home|tên|số điện thoại)\b:?"
)
# "my brother": the clause is about them, and the fact must say so.
_SOMEBODYS = any_case(
    r"\b(?:my|our)\s+(?!(?:own|new|old|house|home|room|garage|garden|desk|pocket|bag|life|mind|opinion|birthday)\b)"
    r"([^\W\d_]+)"
)
# "Bà ngoại mình": the same in Vietnamese.
_SOMEBODYS_VI = any_case(
    r"\b((?:bà|ông)(?: nội| ngoại)?|bố|ba|cha|mẹ|má|anh trai|chị gái|em (?:trai|gái)|con (?:trai|gái)|vợ|chồng|cô|chú|"
    r"bác|dì|cậu|mợ|thím|bạn(?: trai| gái| thân| cùng phòng)?|sếp|hàng xóm|đồng nghiệp)\s+(?:của\s+)?"
    r"(?:tôi|mình|tớ|em|anh|chị|con)\b"
)
# Nobody has yet what they wish for.
_WISH = any_case(
    r"\b(?:would (?:\w+ )?(?:like|love|prefer)|['’]d (?:\w+ )?(?:like|love|prefer|rather)|want(?:ed)? to|wanna|wish|"
    r"hop(?:e|ing)|dream(?:ing)? of|muốn|ước|mong|mơ)\b"
)
_TAKEN_BACK = any_case(
    r"\b(?:forget|remove|delete|erase|wrong|actually|any ?more|no longer|used to|moved|changed|instead|quên|sai|nữa)\b"
)
# A duty is a task only of the writer: "John has to repaint the fence" asks for nothing.
_REQUEST = any_case(
    r"\b(?:remind(?! \w+ (?:how|what|who|where|why|when|which)\b)|todo|to-do|task|"
    r"(?:i|we|i['’]ve|we['’]ve)\s+(?:\w+\s+){0,2}?(?:need|have to|must|should|got to|gotta)|"
    r"don['’]t forget|let me forget|remember to|add|put|list|step|down|note|i will|i['’]ll|"
    r"nhắc|phải|cần|đừng quên|nhớ|hãy|việc)\b"
)
_REFUSED = any_case(
    r"\b(?:no need|need not|needn['’]t|don['’]t (?:have|need|remind|add)|not have to|không cần)\b"
)
_STATE_WORDS: dict[str, re.Pattern[str]] = {
    "done": any_case(
        r"\b(?:done|did|finished|completed|complete|already|ready|bought|paid|sent|called|booked|got|made|wrote|"
        r"written|fixed|check(?:ed)? off|tick(?:ed)? off|xong|rồi|hoàn thành|đã)\b"
    ),
    "cancelled": any_case(
        r"\b(?:cancel|cancelled|canceled|drop|dropped|forget|skip|off|no longer|no need|any ?more|after all|hủy|bỏ)\b"
    ),
    "doing": any_case(
        r"\b(?:doing|working|started|start|starting|begun|began|now|progress|on it|đang|bắt đầu)\b"
    ),
    "waiting": any_case(r"\b(?:wait|waits|waiting|must answer|blocked|until|pending|on hold|chờ|đợi)\b"),
}
# Over, or true for a moment only.
_PASSING = any_case(
    r"\b(?:used to|formerly|back then|as a (?:kid|child)|hồi (?:đó|trước|nhỏ)|ngày xưa|trước đây|"
    r"(?:i['’]?m|i am|we['’]?re|we are) (?!living|working (?:as|at|for|in)\b)\w+ing\b.*"
    r"\b(?:now|today|tonight|at the moment))\b"
)
# Keys whose values are names.
_NAMED = ("home_city", "name", "hometown")
_KEPT = any_case(
    r"\b(?:do(?:es)?n['’]?t|do not|never|not|won['’]?t|đừng)\s+(?:\w+\s+)?(?:cancel|drop|forget|skip|hủy|huỷ|bỏ)"
)
_SHARED_PREFIX = 5


def fact_follows(key: str, text: str, said: QuotedStatement) -> bool:
    """Whether the fact ``text`` under ``key`` follows from what a user said about themselves or asked for."""
    if not _about_the_writer(said, text, key) or _PASSING.search(said.own):
        return False
    if TALK.search(said.own.lstrip()) and not _INSTRUCTION.search(said.own):
        return False
    if _WISH.search(said.own) and usual_key(key) in _SINGLE:
        return False
    if mistaken(text, said.own) or (usual_key(key) in _NAMED and not _has_name(text, said.own)):
        return False
    if said.negated != bool(NEGATION.search(f"{text} {key.replace('_', ' ')}")):
        return False
    clause = said.stems
    expressed = _expressed(said.own)
    if not all(_known(word, clause, expressed) for word in stems(text)) or not _joined(key, text, said.own):
        return False
    words = list(stems(key))
    if any(word in _RELATION_WORDS and not _known(word, clause, expressed) for word in words):
        return False
    return any(_known(word, clause, expressed) for word in words)


def usual_key(key: str) -> str:
    """The key of a relation with a single value, for any of its words: "city" is "home_city"."""
    words = frozenset(stems(key)) - _FUNCTION_WORDS
    found = (each.key for each in _RELATIONS if each.key and words and words <= each.words)
    return key if key == "hometown" else next(found, key)


def taken_back(key: str, said: QuotedStatement) -> bool:
    """Whether the statement takes a known fact back: it is about the key, and denies or corrects it."""
    if not (said.negated or _TAKEN_BACK.search(said.own)):
        return False
    clause, expressed = said.stems, _expressed(said.own)
    return any(_known(word, clause, expressed) for word in stems(key))


def content(text: str) -> frozenset[str]:
    """The stems of the words that say something."""
    return frozenset(stems(text)) - _FUNCTION_WORDS


def task_follows(title: str, said: QuotedStatement) -> bool:
    """Whether somebody asked for the task in the statement."""
    asked = _REQUEST.search(said.sentence) and not _REFUSED.search(said.sentence)
    return bool(asked) and words_follow(title, said)


def words_follow(title: str, said: QuotedStatement) -> bool:
    """Whether the sentence has all words of the title."""
    spoken = frozenset(stems(said.sentence))
    if all(word in _FUNCTION_WORDS for word in stems(title)):
        return False
    return all(_known(word, spoken, ()) for word in stems(title))


_TO_COME = any_case(r"\bto (?:be|get|have)\b|\bsupposed\b|\bnobody\b")


def state_follows(state: str, task: str, title: str, said: QuotedStatement) -> bool:
    """Whether the statement names the task, by its id or title, and says that its state is ``state`` now."""
    expressed = _STATE_WORDS[state]
    if not expressed.search(said.sentence):
        return False
    if state == "done" and _TO_COME.search(said.sentence):
        return False
    if (_KEPT if state == "cancelled" else NEGATION).search(said.sentence):
        return False
    if task.casefold() in said.sentence.casefold():
        return True
    words = [word for word in stems(title) if word not in _FUNCTION_WORDS]
    words = words[1:] or words  # the first one is mostly a verb that other tasks have too
    spoken = frozenset(stems(said.sentence))
    return bool(words) and sum(_in(word, spoken) for word in words) * 2 > len(words)


def _about_the_writer(said: QuotedStatement, text: str, key: str) -> bool:
    clause = said.own
    if _THIRD_PERSON.search(clause):
        return bool(_INSTRUCTION.search(clause)) and not re.search(r"\b(?:he|she|they)\b", clause, re.I)
    # Another one's home must not take the place of the writer's.
    told = frozenset(stems(key if usual_key(key) in _SINGLE else f"{text} {key}"))
    if not all(_is_told(whose, told) for whose in _SOMEBODYS.findall(clause)):
        return False
    if not all(told.issuperset(stems(whose)) for whose in _SOMEBODYS_VI.findall(clause)):
        return False
    if _FIRST_PERSON.search(clause) or _INSTRUCTION.search(clause):
        return True
    if _LABEL.search(clause):
        return True
    if _FIRST_PERSON_PLURAL.search(clause):
        return bool(_expressed(clause))
    # "I live in Huế and plan a trip": the second clause has the subject of the first one.
    before = said.before
    return (
        bool(_FIRST_PERSON.search(before))
        and not _THIRD_PERSON.search(before)
        and not _SOMEBODYS.search(before)
    )


def _joined(key: str, text: str, clause: str) -> bool:
    """Whether the clause has the fact's value as one piece, beside what expresses the relation.

    "My daughter starts school in September" has all words of "the child is September", but not together.
    """
    told, name = frozenset(stems(text)), frozenset(stems(key.partition(":")[0]))
    words = [(match.start(), stem(match[0])) for match in WORD.finditer(clause.replace("_", " "))]
    value: dict[str, int] = {}  # the place where a word stands first
    for at, word in words:
        if _in(word, told) and word not in _FUNCTION_WORDS | _RELATION_WORDS:
            value.setdefault(word, at)
    if not value:
        return False
    first, last = min(value.values()), max(value.values())
    following = [*(word for _, word in words[1:]), ""]
    used = [relation for relation in _expressed(clause) if not relation.words.isdisjoint(told | name)]
    if not used and told - _FUNCTION_WORDS <= name:  # "waiting: The user's waiting"
        return False
    spans = [match.span() for relation in used for match in relation.expressed.finditer(clause)]
    reaches = [(min(first, begin), max(last, end - 1), begin, end) for begin, end in spans] or [
        (first, last, 0, 0)
    ]
    return any(
        all(
            not low <= at <= high
            or begin <= at < end
            or word in _FUNCTION_WORDS
            or (word.isdigit() and counted in value)  # "has apples" leaves out how many
            or _in(word, told | name)
            for (at, word), counted in zip(words, following, strict=True)
        )
        for low, high, begin, end in reaches
    )


def _has_name(text: str, clause: str) -> bool:
    """Whether the fact has a capitalized word of the clause that does not begin it."""
    told = frozenset(stems(text))
    return any(word[0].isupper() and stem(word) in told and word != "I" for word in WORD.findall(clause)[1:])


def _is_told(whose: str, told: frozenset[str]) -> bool:
    """Whether the fact names the person or thing, or its relation: "my wife" is a "partner"."""
    return _in(stem(whose), told) or any(
        relation.expressed.fullmatch(whose) and not relation.words.isdisjoint(told) for relation in _RELATIONS
    )


def _expressed(clause: str) -> list[_Relation]:
    return [relation for relation in _RELATIONS if relation.expressed.search(clause)]


def _known(word: str, clause: Collection[str], expressed: Iterable[_Relation]) -> bool:
    return (
        word in _FUNCTION_WORDS or _in(word, clause) or any(word in relation.words for relation in expressed)
    )


def _in(word: str, clause: Collection[str]) -> bool:
    """Whether the word, or a longer form of it, is there: "allergic" and "allergy" share five letters."""
    return word in clause or (
        len(word) > _SHARED_PREFIX
        and any(
            other[:_SHARED_PREFIX] == word[:_SHARED_PREFIX] for other in clause if len(other) > _SHARED_PREFIX
        )
    )
