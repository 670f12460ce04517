"""Word lists for made-up sentences: common English words, regular verbs only, grouped by use."""

from __future__ import annotations

NOUNS = """
anchor answer apple arch archive arm arrow artist atlas attic axe badge bag baker balcony ball banana band bank
banner barn barrel basin basket battery bay beach beacon beam bean bear bed bee bell belt bench bicycle bill bird
blanket block board boat bolt bone book boot border bottle bowl box branch brass bread brick bridge broom brush
bucket bug builder bulb bus bush button cabin cable cactus cake calendar camera camp canal candle canoe canvas cap
captain car card cargo carpet carriage cart castle cat cave ceiling cellar chain chair chalk channel chapel chapter
chart cheese cherry chest child chimney church circle circuit city clay cliff clock cloth cloud clown club coach
coal coast coat coin collar colour column comb comet compass computer concert cone contract cook copper copy coral
cord corner cottage cotton counter country courtyard cow crane crate crew crown crystal cup curtain cushion customer
dance dancer deck deer desert desk diagram dial diary dictionary dish doctor dog doll dome donkey door dragon
drawer dream dress driver drum duck dust eagle ear editor egg elbow elephant engine engineer envelope event exam
factory fan farm farmer feather fence fern field figure film filter finger fire fish flag flame flask floor flour
flower flute fog forest fork fort fossil fountain fox frame friend frog fruit furnace game garage garden gate ghost
giant gift glacier glass globe glove goat gold goose grain grape grass gravel guard guest guide guitar hall hammer
hand harbour harp hat hawk hedge heel helmet herb hill hinge hole honey hook horn horse hospital hotel house hunter
ice idea ink insect iron island ivory jacket jar jewel journal journey judge jug juice jungle kettle key king
kitchen kite knee knife knight knot ladder lake lamp lantern laundry lawn lawyer leaf leather lemon lens letter
library lid lighthouse lily line lion list lizard lock log loop machine magnet mail mango map marble market mask
mast mat meadow meal medal melody melon merchant metal meter mill miner mirror mist mole monkey monument moon
mosaic moss moth motor mountain mouse museum mushroom musician nail napkin neck needle nest net newspaper night
note novel nurse nut oak oar ocean office oil olive onion orange orchard orchestra organ otter oven owl painter
painting palace palm pan panel paper parade park parrot passage passenger path pattern pea peach pear pearl pebble
pen pencil pepper piano picture pig pigeon pilgrim pillar pillow pilot pine pipe pirate planet plank plant plate
platform player plough pocket poem poet pole pond pony porch port portrait post pot potato potter prince printer
prison prize pump puppet purse puzzle pyramid queen quilt rabbit radio raft rail rain ranger raven recipe record
reed region rent report ribbon rice ring river road robe robot rock rod roof room root rope rose ruby rug ruler sack
saddle sail sailor salad salt sand sandal saw scale scarf school scissors screen screw sculptor sea seal season
seat secret seed shadow shed sheep sheet shelf shell shepherd shield ship shirt shoe shop shore shoulder shovel
sign signal silk silver singer sink skirt skull sky slope smoke snail snake snow soap sock sofa soil soldier song
soup spade spark sparrow spider spoon spring square squirrel stable staff stage stair stamp star statue steam steel
stem stone storm story stove straw stream street string student sugar suit summer sun swan sword table tailor tale
tank tape target tax taxi tea teacher team temple tent test theatre thread throne thumb ticket tide tiger tile
timber toad toast tomato tongue tool tooth torch tower town toy track tractor train tree tribe truck trumpet trunk
tube tulip tunnel turtle tyre umbrella uncle uniform valley vase vault vegetable vehicle vessel village vine violin
visitor voice volcano voyage wagon waiter wall walnut warehouse watch water wave wax weapon weather wedding whale
wheat wheel whistle willow wind window wine wing winter wire wolf wool worker workshop worm yard zebra
""".split()

TECH_NOUNS = """
accumulator address array bit bracket branch buffer byte cell character class closure clause code column command
comment compiler constant counter cursor data debugger decoder delimiter digit direction encoder error expression
field file flag function generator grammar graph grid header heap identifier index input instruction integer
interpreter iterator keyword label layer letter library line list literal lock loop macro matrix memory message
method module name node number object operand operator output packet page parameter parser pattern pixel pointer
port process program prompt queue record register result return row rule scope script segment semicolon sequence
server set shape shell signal slot source space stack state statement step string stream suffix symbol syntax
system table tape task terminal thread timer token tree tuple type value variable vector version whitespace word
""".split()

ADJECTIVES = """
able ancient angry bare bitter black blind blue bold brave brief bright broad broken brown busy calm careful cheap
clean clear clever cold common complete complex cool crooked curious curved damp dark deep dense dirty double dry
dull eager early easy electric elegant empty equal exact extra faint fair false famous fancy fast final fine firm
flat foreign formal fragile free frequent fresh frozen full funny gentle giant glad golden good grand great green
grey happy hard harmless heavy hidden high hollow hot huge hungry idle important inner jealous kind large late lazy
light little local lonely long loose loud low lucky main mild minor mixed modern muddy narrow naive neat negative
new noisy normal odd old open orange outer pale patient perfect plain polite popular positive private proud public
pure purple quick quiet rapid rare raw ready real recent red regular rich rigid ripe rough round royal rude rusty
sad safe salty secret serious shallow sharp shiny short shy silent silly silver simple single slow small smart
smooth soft solid sour special square stable steep sticky stiff straight strange strict strong stubborn sudden
sunny sweet tall tame tender thick thin tidy tight tiny tired tough transparent ugly unusual upper usual vague
valid vast violet warm weak wet white whole wicked wide wild wise wooden worn yellow young
""".split()

VERBS = """
accept add adjust admire allow announce answer approach arrange ask attach attack avoid bake balance bless block
boil borrow bounce brush call carry cause change chase check claim clean clear climb close collect colour combine
command compare complete connect consider contain control convert cook copy correct count cover crash create cross
damage decorate defend deliver describe design destroy detect discover display divide double drag drain drop dry
earn encourage enjoy enter escape examine exchange expand explain explore extend fasten fetch fill film fix float
fold follow force form gather generate glue grab greet guard guess guide hammer handle harvest heat help hunt
identify ignore imagine improve include increase inform inspect install invite jump kick label launch learn lift
limit list load lock love maintain manage mark match measure melt mention mix modify move multiply name need notice
obey observe obtain offer open operate order organize own pack paint park pass pause perform pick place plant play
please point polish pour praise prefer prepare present preserve press prevent print process produce promise protect
prove pull pump push question race raise reach receive record reduce reflect refuse reject release remember remove
rename repair repeat replace report represent request rescue respect restore return reverse review roll rotate rub
sail save scan scatter search select separate serve shape share shift signal skip smell solve sort spray start
steer stir store stretch supply support surprise surround switch taste test tie touch trace track trade train
translate trap travel treat trust turn twist type unlock update use visit walk want warm warn wash watch water weigh
welcome whisper wrap
""".split()

ADVERBS = """
again almost always badly barely boldly briefly calmly carefully carelessly clearly constantly daily directly early
easily eagerly exactly firmly freely gently gladly happily hardly hourly lately lazily lightly loudly mostly nearly
neatly never nightly nowadays often once openly partly patiently politely poorly proudly quickly quietly rarely
regularly sadly safely seldom sharply silently simply slowly smoothly softly sometimes soon steadily still suddenly
together twice usually weekly well yearly
""".split()

PREPOSITIONS = """
above across after against along among around before behind below beneath beside between beyond despite during
except for from inside into near opposite outside over past through toward under until upon with within without
""".split()

FIRST_NAMES = """
Anna Ben Carla Dinh Emre Fatima Grace Hugo Ines Jonas Kira Liam Mei Nadia Omar Petra Quentin Rosa Samir Tuan Uma
Viktor Wanda Xavier Yuki Zoe Alice Bob Chloe David Elena Felix Gita Hana Ivan Jana Karl Lena Marco Nina Oscar Paul
Rita Stefan Tara Ulrich Vera Will Yara Zack Adam Bela Cora Dora Erik Frida Georg Heidi Igor Julia Kofi Lucy Minh
Noor Olaf Pia Rahul Sofia Tom Ugo Vince Wei Ayla Bruno Chen Dario Esther Finn Gus Hilde Isaac Joy Kenji Lan Mila
""".split()

PLACES = """
north south east west coast valley capital border harbour village island plateau delta district province peninsula
""".split()

MONTHS = "January February March April May June July August September October November December".split()

NUMBER_WORDS = """
two three four five six seven eight nine ten eleven twelve thirteen fourteen sixteen twenty thirty forty
""".split()


def third(verb: str) -> str:
    """Third person singular of a regular verb: carry → carries."""
    if verb.endswith(("s", "sh", "ch", "x", "z")):
        return verb + "es"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


def past(verb: str) -> str:
    """Past tense of a regular verb: carry → carried, stop-like short verbs double the consonant."""
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    doubles = ("drag", "drop", "grab", "rub", "scan", "skip", "stir", "trap", "wrap", "control", "pat", "prefer")
    if verb in doubles:
        return verb + verb[-1] + "ed"
    return verb + "ed"


def plural(noun: str) -> str:
    """Plural of a regular noun: box → boxes, berry → berries."""
    if noun.endswith(("s", "sh", "ch", "x", "z")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def article(word: str) -> str:
    """The indefinite article with its word: an apple, a unit."""
    return ("an " if word[0].lower() in "aeio" else "a ") + word
