"""Facts about made-up towns, people, animals, machines and bands, in the row form of `facts_language`."""

from __future__ import annotations

from facts_language import Row

TOWN: tuple[Row, ...] = (
    ("population", "K", (), ("{S} has [about |around |nearly |]{K} [inhabitants|people|residents].", "{K} people live in {N}.", "The population of {N} is {K}.", "~{N} is home to {K} people."),
     ("how many people live in {N}", "what is the population of {N}", "{N} [population|inhabitants]", "how [big|large] is {N}", "~number of residents of {N}")),
    ("mayor", "P", (), ("The mayor of {N} is {P}.", "{P} [became|is|was elected] mayor of {N}.", "~{N} is led by {P}."),
     ("who is the mayor of {N}", "{N} mayor", "who [runs|governs] {N}", "~who leads {N}")),
    ("founded", "Y", (), ("{S} was founded in {Y}.", "The [town|city|village] of {N} [was founded|dates from|was built] in {Y}.", "~{N} began in {Y}."),
     ("when was {N} [founded|built]", "{N} founding year", "what year was {N} founded", "how old is {N}", "~the beginning of {N}")),
    ("river", "T", (), ("{S} lies on the [river|lake] {T}.", "The river {T} [flows through|crosses|passes] {N}.", "~{N} stands where {T} bends."),
     ("[what|which] river [flows through|is in|crosses] {N}", "{N} river", "where [is|lies] {N}", "~what water runs by {N}")),
    ("product", "W", (), ("{S} is [famous|known|well known] for {W}.", "{S} [exports|produces|sells] {W}.", "~{W} made {N} famous."),
     ("what is {N} [famous|known] for", "what does {N} [export|produce]", "{N} [exports|famous for]", "~why do people know {N}")),
    ("definition", "W", (), ("{S} is [a town|a city|a village|a port|an island] [near|above|behind|with] {W}.", "{S} is [a small|an old|a quiet] [town|place] [near|beside] {W}.", "~{N}, that is the place near {W}."),
     ("what is {N}", "tell me about {N}", "where is {N}", "describe {N}", "~what sort of place is {N}")),
)

PERSON: tuple[Row, ...] = (
    ("born", "Y", (), ("{S} was born in {Y}.", "The [birth year|year of birth] of {N} is {Y}.", "~{Y} was the year in which {N} came into the world."),
     ("when was {N} born", "{N} [born|birth year|year of birth]", "how old is {N}", "what year was {N} born in", "~birthday of {N}")),
    ("job", "W", (), ("{S} [works|worked] as a [painter|teacher|keeper|collector|builder] of {W}.", "{S} [earns|earned] a living with {W}.", "~{W} was the trade of {N}."),
     ("what does {N} do", "what is the job of {N}", "{N} [job|profession]", "what did {N} work as", "~trade of {N}")),
    ("home", "T", (), ("{S} [lives|lived|grew up|was raised] in {T}.", "{T} is the [home|home town|birthplace] of {N}.", "~{N} calls {T} home."),
     ("where does {N} live", "where did {N} [live|grow up]", "{N} [home|home town|birthplace]", "where is {N} from", "~what place does {N} come from")),
    ("invention", "T", (), ("{S} [invented|built|designed|wrote|created] {T}.", "{T} is the [best known|most famous] [work|creation] of {N}.", "~To {N} we owe {T}."),
     ("what did {N} [invent|create|build|write|make]", "{N} [inventions|works|creations]", "what is {N} [known|famous] for", "~main achievement of {N}")),
    ("definition", "W", (), ("{S} is a [painter|writer|programmer|singer|teacher|researcher] [interested in|fond of|known for] {W}.", "{S} is [an artist|an engineer] who studies {W}.", "~{N} may be called a friend of {W}."),
     ("who is {N}", "tell me about {N}", "who was {N}", "~what sort of person is {N}")),
)

ANIMAL: tuple[Row, ...] = (
    ("food", "W", (), ("{S} [eats|feeds on|lives on|hunts] {W}.", "The [diet|main food] of the {N} is {W}.", "~{W} is what the {N} likes to swallow."),
     ("what does the {N} eat", "what do {N} eat", "{N} [diet|food]", "what is the [food|diet] of the {N}", "~what does the {N} swallow")),
    ("weight", "K", (), ("{S} [weighs|can weigh] [up to |about |]{K} [kilograms|grams|pounds].", "The weight of the {N} is {K} [grams|kilograms].", "~On the scales the {N} shows {K} grams."),
     ("how heavy is the {N}", "how much does the {N} weigh", "{N} weight", "~mass of the {N}")),
    ("lifespan", "K", (), ("{S} [lives|can live|lives for] [up to |about |]{K} [years|days|weeks].", "The life span of the {N} is {K} years.", "~After {K} years a {N} is very old."),
     ("how long does the {N} live", "{N} [lifespan|life span]", "how old can the {N} [get|become]", "~years in the life of the {N}")),
    ("habitat", "W", (), ("{S} [lives|nests|sleeps|hides] [near|behind|under] {W}.", "The [habitat|home] of the {N} is {W}.", "~To find a {N}, look around {W}."),
     ("where does the {N} [live|sleep|nest]", "{N} habitat", "what is the habitat of the {N}", "~where can one find the {N}")),
    ("colour", "C", ("red", "green", "dark blue", "black and white", "brown with yellow spots", "silver", "orange", "purple", "striped", "transparent"), ("{S} is {C}.", "The [fur|skin|coat|feathers] of the {N} is {C}.", "~One knows the {N} as {C}."),
     ("what colour is the {N}", "{N} colour", "what does the {N} look like", "~how does the {N} appear")),
)

MACHINE: tuple[Row, ...] = (
    ("maker", "T", (), ("{S} is [made|built|sold|produced] by {T}.", "{T} [makes|builds|sells|produces] {N}.", "The [maker|manufacturer] of {N} is {T}.", "~{N} leaves the factory of {T}."),
     ("who [makes|builds|sells|produces] {N}", "{N} [maker|manufacturer]", "which company makes {N}", "~what firm is behind {N}")),
    ("price", "K", (), ("{S} costs {K} [dollars|euros|crowns].", "The price of {N} is {K} [dollars|euros].", "~For {K} crowns one gets {N}."),
     ("how much [does {N} cost|is {N}]", "{N} [price|cost]", "what is the price of {N}", "what does {N} cost", "~how expensive is {N}")),
    ("power", "K", (), ("{S} [needs|uses|draws|consumes] {K} watts.", "The power of {N} is {K} watts.", "~{K} watts are enough for {N}."),
     ("how much power does {N} [need|use|draw]", "{N} [power|watts]", "how many watts does {N} [use|need]", "~electricity for {N}")),
    ("part", "W", (), ("{S} [contains|has|includes] {W}.", "The [main part|core|heart] of {N} is {W}.", "~Inside {N} one finds {W}."),
     ("what does {N} [contain|include]", "what is [inside|in] {N}", "{N} [parts|main part]", "~what lies within {N}")),
    ("use", "W", (), ("{S} is used [to repair|to clean|to move|to measure|to draw|to cut] {W}.", "People use {N} [for|to handle] {W}.", "~The task of {N} is {W}."),
     ("what is {N} used for", "{N} [use|usage|purpose]", "what do people use {N} for", "what does {N} do", "~task of {N}")),
    ("weight", "K", (), ("{S} weighs {K} [kilograms|tons|grams].", "The weight of {N} is {K} kilograms.", "~{N} brings {K} kilograms to the scales."),
     ("how heavy is {N}", "how much does {N} weigh", "{N} weight", "~mass of {N}")),
)

BAND: tuple[Row, ...] = (
    ("members", "K", (), ("{S} has {K} members.", "There are {K} [people|musicians|members] in {N}.", "~{K} musicians form {N}."),
     ("how many [members|people|musicians] [does {N} have|are in {N}]", "{N} [members|number of members]", "~size of the group {N}")),
    ("singer", "P", (), ("The [singer|lead singer] of {N} is {P}.", "{P} [sings|has always sung] in {N}.", "~The voice of {N} belongs to {P}."),
     ("who sings in {N}", "who is the [singer|lead singer] of {N}", "{N} [singer|lead singer]", "~whose voice is heard in {N}")),
    ("song", "T", (), ("The [best known|most popular|first] song of {N} is {T}.", "{S} [wrote|recorded|performed] {T}.", "~Fans of {N} love {T}."),
     ("what is the [best known|most popular|first] song of {N}", "{N} [song|best song|hit]", "what did {N} record", "~what do fans of {N} love")),
    ("started", "Y", (), ("{S} was formed in {Y}.", "{S} [started|began] in {Y}.", "~The story of {N} opens in {Y}."),
     ("when [was {N} formed|did {N} start]", "{N} [year|start]", "since when does {N} exist", "~first year of {N}")),
)

GENERAL: dict[str, tuple[tuple[Row, ...], tuple[str, ...]]] = {
    "town": (TOWN, ("It", "The town", "The place")),
    "person": (PERSON, ("She", "He", "They")),
    "animal": (ANIMAL, ("It", "The animal", "This animal")),
    "machine": (MACHINE, ("It", "The device", "The machine")),
    "band": (BAND, ("It", "The band", "The group")),
}
