"""Words that say about the same in a question and on a page: a person asks what is poisonous, a page says toxic.

They help to find and to choose passages. Claims are not checked with them.
"""

from __future__ import annotations

from collections.abc import Iterable

from gateway.base.patterns import any_case
from gateway.base.stems import other_forms, stem

_GROUPS = """
poisonous toxic venomous
begin start commence beginning
buy bought purchase purchased acquire acquired sell sold sale
company firm manufacturer vendor supplier maker
delete remove erase removal deletion undelete uninstall deinstall purge
picture photo photograph image screenshot snapshot
big large huge
bigger larger enlarge increase
smaller shrink reduce decrease
quick fast rapid speed quickly
car automobile vehicle
pronounce pronunciation pronounced
restore recover recovery
allow permit enable enabled allowed
forbid prohibit disallow forbidden
disable deactivate
leave omit exclude lack without
quit exit close leave
get obtain receive
need require required requirement prerequisite
replace replaced supersede substitute obsolete
dim dark darker darken dimmed
hot warm heat overheat
beginner novice newbie
rename renamed
error mistake bug fault accident
illness disease sickness
people person human
people participant attendee
money cash fund
job work employment profession occupation
country nation land
city town
king ruler monarch
child kid children
teach teacher education
cheap inexpensive
expensive costly
show display displayed shown view
hide conceal hidden
choose select pick option
change modify edit alter switch
find locate search discover discovered found
isolate isolated discover discovered
repair fix
join combine merge connect
divide split separate
easy simple
difficult hard
rule condition constraint requirement
aim goal purpose objective
folder directory
undo revert
copy duplicate clone
save store
send transmit
shut turn off shutdown
stop end finish
trash wastebasket bin
wireless wifi wlan
abbreviation acronym
similar alike
earlier previous prior former formerly
originally formerly
usual common typical
famous known
size length width
inventor discoverer
sign symbol character
two-sided duplex double-sided both
command instruction operation opcode
print output
author creator inventor designer founder
kid child youngster
letter character symbol sign
flag option switch parameter
login password credential account
dollar money price cost
nickname alias
guide manual tutorial handbook documentation
app application program software
pc computer machine
laptop notebook
lookup search
detach separate split
boss manager supervisor superior
ill sick unwell
sickness illness
doctor physician medical
vet veterinary veterinarian
vacation holiday leave
colleague coworker
staff employee worker personnel
employ hire recruit
salary wage pay paid
paycheck payslip salary
refund reimburse repay expense
invoice bill receipt
fee cost price charge dues
pay cost price fee
free gratis nothing
retire retired pensioner pension senior elderly
daughter son kid child junior
teenager youth junior
student pupil study studies studying
father mother parent dad mum mom
marry married marriage wedding
baby birth newborn pregnant
yearly annual annually year
monthly month
weekly week
daily day
minimum min least lowest smallest
maximum max most utmost limit highest largest
late latest until before deadline
early before
distance course route length
far distance kilometre km
kilometre km
mile mi
hour hr
drive drove driving car
towing tow trailer
parking park car
bike bicycle cycle
train railway rail
flight plane fly airplane
hotel accommodation lodging
luggage baggage suitcase
spectator visitor audience
visitor guest
friend guest companion
meet gather assemble assembly
conference meeting
race regatta competition contest tournament
win prize award
capsize overturn turned
treasurer money finance
chair chairman president head lead
responsible charge head lead leadership
boat ship vessel
swim swimming
lesson class course training
learn course train
exam test examination
cancel quit resign leave terminate
member membership
join enrol enroll register sign
apply application
permission approve approval consent ok
unlock key lock
door gate entrance
building house
flat apartment
room hall
lunch meal dish dinner
eat food meal
drink beverage
shower bath wash
toilet bathroom restroom
clothes clothing wear shirt dress
broken damaged defective damage bent
injured hurt injury accident
fire alarm emergency evacuation
garbage rubbish trash waste
noise music loud
telephone phone call
email mail
letter mail post
parcel package
blocked locked
harvest pick reap
sow plant seed
water watering irrigate
pest bug insect
fertilizer fertiliser manure
flower blossom bloom
age old
duration last long
frequency often
colour color
additional extra more
unused left carry
wrong incorrect mistype mistyped mistake invalid
try attempt tries
improve upgrade enhance strengthen
weak weakness vulnerable vulnerability
defeat beat kill fight
music composer composed soundtrack song
film movie
theft thief steal robbery
fix solve mend troubleshoot
crash freeze hang stuck
attach attachment
probation trial
code status
own custom customize customized personal
password authentication authenticate
compress compression deflate gzip zip
add addition sum plus arithmetic
biggest largest maximum limit
upgrade update migrate migration
backup dump archive
encrypt encryption encrypted
shortcut alias hotkey keybinding binding
website site
expire expiry expiration
schedule scheduled timer cron
running activity active
verify verification validate check
block deny ban reject
upload attach
kill terminate cancel abort
user account
canteen cafeteria
voice dub speak
reward prize
""".strip().splitlines()


def _grouped() -> dict[str, dict[str, None]]:
    """The words that say about the same as a stem, in the order of the groups."""
    words: dict[str, dict[str, None]] = {}
    for group in map(str.split, _GROUPS):
        for each in set(map(stem, group)):
            words.setdefault(each, {}).update(dict.fromkeys(group))
    return words


_WORDS = _grouped()
_SYNONYMS = {each: frozenset(map(stem, words)) for each, words in _WORDS.items()}

_NUMERAL = (
    r"(?:[0-9]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|million)\b)[\s-]*"
)
# What is paid in any coin: "for 500 embers", not "for 3 days".
PAID_FOR = (
    r"\bfor [0-9][0-9.,]* (?!(?:seconds?|minutes?|hours?|days?|nights?|weeks?|months?|years?|people|persons|players|"
    r"times|percent)\b)[^\W\d_]+"
)
# What a word asks for is told by units and the like: "54 megabits per second" says how fast something is.
_MEASURES = tuple(
    (frozenset(map(stem, words.split())), any_case(pattern))
    for words, pattern in (
        (
            "fast quick speed slow rate",
            r"\bper second|\b[kmgt]?(?:bit|byte|b)/s\b|bps\b|[kmg]hz\b|\bkm/h|\bmph\b",
        ),
        (
            "last duration time",
            _NUMERAL
            + r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)\b|\bfrom\b.{3,40}\b(?:until|till|to)\b",
        ),
        ("frequency band", r"[0-9]\s?[kmgt]?hz\b|\bhertz\b"),
        (
            "cost price expensive cheap pay",
            rf"[$€£¥]\s?[0-9]|[0-9]\s?(?:[$€£¥]|dollars?|euros?|pounds|cents)\b|{PAID_FOR}",
        ),
        (
            "far apart distance wide tall high deep height width depth thick",
            _NUMERAL + r"(?:[µnmck]?m|met(?:er|re)s?|inch(?:es)?|feet|foot|miles?|pixels?|[ck]?m)\b",
        ),
        ("heavy weigh weight mass", _NUMERAL + r"(?:k?g|mg|grams?|tons?|tonnes?|pounds?|lbs?|oz)\b"),
        ("hot cold warm temperature", _NUMERAL + r"(?:°|degrees|[CFK]\b)"),
        ("memory storage", _NUMERAL + r"(?:[kmgt]i?b|bytes?|(?:kilo|mega|giga)bytes?|words)\b"),
        (
            "colour color",
            r"\b(?:red|green|blue|yellow|white|black|brown|gr[ae]y|orange|pink|purple|violet|silvery?|golden|"
            r"colou?rless)(?:dish|ish)?\b",
        ),
    )
)


# Stems that pages may say in other words, or by a measure.
STANDING_FOR_OTHERS = frozenset(_WORDS).union(*(words for words, _ in _MEASURES))


def synonymous(word: str, other: str) -> bool:
    """Whether two stems say about the same."""
    return other in _SYNONYMS.get(word, ())


def other_words(words: Iterable[str]) -> list[str]:
    """The words that say about the same as these stems, to search for."""
    known = frozenset(words)
    others = (each for word in sorted(known) for each in _WORDS.get(word, ()))
    found = [each for each in dict.fromkeys(others) if stem(each) not in known]
    return [*found, *(form for word in sorted(known) for form in other_forms(word))]


def measured(word: str, text: str) -> bool:
    """Whether a text tells the measure that a stem asks for."""
    return any(word in asked and told.search(text) for asked, told in _MEASURES)
