"""Facts about made-up programming languages: how they are stated and how they are asked for.

Fields: {S} the subject as a name or pronoun, {N} the name, {P} a person, {Y} a year, {K} a number, {T} another
thing, {C} a choice from the list, {G} a sign, {W} a made-up phrase. A row is
(key, fields that carry the fact, choices, statements, questions).
"""

from __future__ import annotations

Row = tuple[str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]

LANGUAGE: tuple[Row, ...] = (
    ("creator", "P", (), (
        "{S} was [created|designed|invented|made|devised|developed|written|conceived] by {P}.",
        "{S} is [the work of|a creation of|an invention of|a language by|a design by|a joke by] {P}.",
        "{P} [created|designed|invented|made|devised|came up with|wrote|published] {N}.",
        "[The author|The creator|The designer|The inventor] of {N} is {P}.",
        "{S} [comes|came] from {P}, who [also makes|paints|collects|repairs] {W}.",
        "~{S} owes its existence to {P}.", "~It was {P} who thought up {N}."),
        ("who [made|created|designed|invented|wrote|came up with|developed] {N}", "who is the [author|creator|inventor|designer] of {N}",
         "{N} [author|creator|designer|made by]", "by whom was {N} [made|created|designed]", "whose [idea|invention|work] [is|was] {N}",
         "who is behind {N}", "do you know who [made|created|wrote] {N}", "~name the person who made {N}", "~who do we thank for {N}")),
    ("year", "Y", (), (
        "{S} [appeared|was released|was published|first appeared|came out|was created|was finished|was announced] in {Y}.",
        "{S} dates from {Y}.", "{S} [has existed|has been around] since {Y}.", "[The year of|The first release of] {N} was {Y}.",
        "In {Y}, {N} was [published|released|announced|presented] [for the first time|to the public|online].",
        "~The year {Y} saw the birth of {N}."),
        ("when was {N} [made|created|released|published|invented|designed]", "what year [is|was] {N} from", "when did {N} [appear|come out|start]",
         "{N} [year|release year|release date|date]", "in [what|which] year [did|was] {N} [appear|released|created]", "how old is {N}",
         "since when does {N} exist", "~what is the date of {N}")),
    ("creator_year", "PY", (), (
        "{S} was [created|designed|invented|made|devised|written] by {P} in {Y}.", "{P} [created|designed|invented|made|wrote] {N} in {Y}.",
        "In {Y}, {P} [created|designed|invented|published] {N}.", "{S} is [an esoteric|a programming|a joke] language [created|designed] in {Y} by {P}.",
        "~{S}, a work of {P}, goes back to {Y}."),
        ("who [made|created|designed|invented|wrote] {N}", "when was {N} [made|created|designed|invented]", "who [made|created] {N} and when",
         "{N} [author|creator|origin]", "in which year was {N} [made|created]", "~where does {N} come from")),
    ("intro", "PY", (), (
        "{S} is [an esoteric|a|a joke|a minimalist|a stack-based|a two-dimensional, stack-based|a very simple esoteric|an esoteric, functional|a golfing|a queue-based|a self-modifying|a two-dimensional|a graphical|a declarative] programming language [created|designed|invented|written|made|devised|published|introduced] [by {P} in {Y}|in {Y} by {P}|by {P}|by {P} and first published in {Y}|by {P}, who announced it in {Y}].",
        "{S} is [an esoteric|a|a small|a two-dimensional|an esoteric programming] language by {P}[ from {Y}|, published in {Y},|] in which [programs look like|every command is written as|the source code consists of] {W}.",
        "{S} is [a dialect|a variant|a simplified version|an extension|a relative|a descendant] of {T} [made|created|designed] by {P} in {Y}.",
        "~In {Y}, {P} came up with {N}, a toy language for {W}."),
        ("what is {N}", "what's {N}", "tell me about {N}", "{N}", "who [made|created|designed|invented|wrote|came up with|developed] {N}", "who is the [author|creator|inventor|designer] of {N}",
         "{N} [author|creator|designer|origin]", "describe {N}", "[explain|who is behind] {N}", "~name the person who made {N}")),
    ("definition", "W", (), (
        "{S} is [an esoteric programming|a programming|an esoteric|a minimalist|a joke|a stack-based|a two-dimensional] language [based on|built around|about|made for|inspired by] {W}.",
        "{S} is a [language|dialect|notation|system] that [uses|works with|looks like|is built from] {W}.",
        "{S}, a [small|strange|tiny] language, is [all about|built on] {W}.", "~{S} can be described as a language of {W}."),
        ("what is {N}", "what's {N}", "tell me about {N}", "[explain|describe] {N}", "what [kind|sort] of [language|thing] is {N}", "{N}",
         "what do you know about {N}", "can you explain {N} to me", "~give me an idea of {N}")),
    ("inspiration", "T", (), (
        "{S} was [inspired by|based on|influenced by|modelled on|derived from] {T}.", "{S} [borrows|takes|copies] [many|most|some] ideas from {T}.",
        "The [idea|inspiration|model] for {N} was {T}.", "{S} is a [variant|descendant|dialect|version|derivative|relative] of {T}.",
        "{T} [inspired|influenced] {N}.", "~Much of {N} goes back to {T}."),
        ("what [inspired|influenced] {N}", "what [is|was] {N} based on", "which language [inspired|influenced] {N}", "what is {N} derived from",
         "{N} [inspiration|based on|influences|derived from]", "where do the ideas of {N} come from", "~what is the model behind {N}")),
    ("instructions", "K", (), (
        "{S} has [only |exactly |just |a total of |]{K} [instructions|commands|operations|symbols].", "There are {K} [instructions|commands] in {N}.",
        "{S} [uses|offers|knows|provides|consists of|defines] [only |exactly |]{K} [instructions|commands|opcodes|operators].",
        "The [instruction set|command set] of {N} [has|contains] {K} [members|entries|instructions].", "~Programs in {N} are made of {K} different commands."),
        ("how many [instructions|commands|operations|operators|symbols] [does {N} have|are in {N}|are there in {N}]", "number of [commands|instructions] in {N}",
         "{N} [instruction count|how many commands|number of instructions]", "how [big|large] is the instruction set of {N}", "~count of the commands {N} knows")),
    ("memory", "C", ("an infinite tape of cells", "a single stack", "two stacks", "a queue", "a single accumulator", "a grid of bytes",
        "an unbounded array of integers", "a tape of bits", "a doubly linked list", "a circular buffer", "a deque of numbers", "a set of registers",
        "one big string", "a binary tree", "a hash table", "a ring of wrapping cells", "a pile of cards", "a random access memory", "a list of words"), (
        "{S} [uses|stores data in|stores values in|keeps its data in|works on|operates on] {C}.", "The memory of {N} [is|consists of] {C}.",
        "[Memory|Data|Storage] in {N} is {C}.", "{S} has {C} [as its memory|as storage|for memory|to hold data].", "~All values of {N} live in {C}."),
        ("[what|which] [memory|memory model|storage|data structure] does {N} [use|have]", "where does {N} [store|keep] [data|values|its data]",
         "how does {N} [store|keep] [data|values|things]", "{N} [memory|memory model|storage|data storage]", "what is the memory of {N}", "~how is data held in {N}")),
    ("turing", "C", ("Turing complete", "not Turing complete", "a finite state machine", "a push-down automaton", "a linear bounded automaton",
        "Turing complete if memory is unlimited", "believed to be Turing complete", "not known to be Turing complete", "able to simulate any Turing machine"), (
        "{S} is {C}.", "[It was shown|It has been proven|It is known|Someone proved] that {N} is {C}.", "[Computationally|In theory|As far as is known], {N} is {C}.",
        "~As to its power, {N} is {C}."),
        ("is {N} [turing complete|turing-complete|Turing complete|tc]", "what is the computational [class|power] of {N}", "{N} [turing complete|computational class|turing completeness]",
         "can {N} compute everything", "how powerful is {N}", "is {N} really turing complete", "~is every program possible in {N}")),
    ("extension", "X", (), (
        "{S} [programs|files|source files] [use|have|carry] the [file |]extension .{X}.", "The [file extension|file name extension|extension|suffix] of {N} is .{X}.",
        "[Source files|Programs|Files] of {N} [end in|have the extension|end with] .{X}.", "~Scripts for {N} are saved as .{X} files."),
        ("[what|which] [file extension|extension|suffix] does {N} [use|have]", "{N} [file extension|extension|file suffix|file type]", "what is the [file |]extension of {N} [files|programs]",
         "what do {N} files end [with|in]", "~how are files of {N} named")),
    ("implementation", "T", (), (
        "The [first|reference|original|official|main] [interpreter|compiler|implementation] of {N} [was|is] written in {T}.",
        "{S} [was implemented|is implemented|was first implemented] in {T}.", "There is an [interpreter|implementation] of {N} [in|written in] {T}.",
        "~The program that runs {N} is built with {T}."),
        ("[what|which] [language|] is {N} [implemented|written] in", "what is the [interpreter|compiler|implementation] of {N} written in", "{N} [implementation|interpreter language|implemented in]",
         "in [what|which] language is the {N} [interpreter|compiler] [written|made]", "~what was used to write {N}")),
    ("command", "C", ("adds the two top values", "prints the top of the stack", "reads one character of input", "moves the pointer to the left", "moves the pointer to the right",
        "ends the program", "skips the next instruction", "duplicates the top value", "swaps the two top values", "jumps to the start of the loop", "increments the current cell",
        "decrements the current cell", "pushes a zero", "turns the direction of flow by ninety degrees", "picks a random direction", "outputs the value as a number", "reverses the stack",
        "multiplies the two top values", "starts a comment", "calls a function", "drops the top value", "negates the accumulator", "toggles string mode", "compares two values", "prints a line break"), (
        "The [command|instruction|symbol|operator|character] {G} {C}.", "In {N}, {G} {C}.", "{G} is the [command|instruction] that {C}.", "The {G} [command|instruction] of {N} {C}.", "~Writing {G} {C}."),
        ("what does {G} do in {N}", "what does the [command|instruction|symbol|operator] {G} do in {N}", "what does {G} mean in {N}", "{N} {G} [command|meaning|instruction]",
         "what is {G} for in {N}", "~explain the sign {G} of {N}")),
    ("purpose", "W", (), (
        "{S} was [made|designed|created|built|written] [to show|to mock|to demonstrate|to explore|to celebrate|as a parody of|as a study of] {W}.", "The [purpose|goal|aim|point] of {N} is to [show|explore|mock|honour] {W}.",
        "{S} is [meant|intended] as a [tribute to|joke about|test of|parody of] {W}.", "~With {N}, the author wanted to praise {W}."),
        ("why was {N} [made|created|designed|built]", "what is the [purpose|goal|aim|point] of {N}", "what is {N} [for|meant for|good for]", "{N} [purpose|goal|aim]", "~for what reason does {N} exist")),
    ("naming", "W", (), (
        "The name {N} [comes from|refers to|was taken from|is a pun on|stands for|alludes to] {W}.", "{S} is named after {W}.", "{S} [got|takes] its name from {W}.", "~The word {N} was chosen because of {W}."),
        ("where does the name {N} come from", "what does [the name |]{N} [mean|stand for]", "why is {N} called [that|so|{N}]", "{N} [name origin|name meaning|etymology]", "what is {N} named after", "~how did {N} get its name")),
    ("dimensions", "C", ("one-dimensional", "two-dimensional", "three-dimensional", "four-dimensional", "hexagonal", "graph-shaped", "tree-shaped", "spiral", "circular"), (
        "The [code|program|source code|playfield|program space] of {N} is {C}.", "{S} programs are {C}.", "{S} has a {C} [playfield|program|code space].", "~Code in {N} is laid out in a {C} way."),
        ("how many dimensions does {N} have", "what shape [is|has] the [code|program] of {N}", "is {N} [two-dimensional|2d|one-dimensional]", "{N} [dimensions|shape of code]", "~how is the code of {N} laid out")),
    ("types", "C", ("only integers", "only strings", "only bits", "bytes and nothing else", "functions and numbers", "signed integers of any size", "floating point numbers", "lists of lists", "complex numbers",
        "single characters", "natural numbers", "rational numbers", "sets of numbers"), (
        "{S} [supports|knows|has|handles|works with] {C}.", "The [data types|types|values] of {N} are {C}.", "Values in {N} are {C}.", "~A variable of {N} can hold {C}."),
        ("[what|which] [data types|types|values] does {N} [have|support|know]", "{N} [data types|types|type system]", "what kind of values are in {N}", "~what can a variable in {N} hold")),
    ("paradigm", "C", ("imperative", "functional", "declarative", "object-oriented", "concatenative", "stack-based", "string-rewriting", "logic-based", "event-driven", "reversible", "self-modifying", "queue-based", "pattern-matching"), (
        "{S} is [a|an|a purely|a mostly] {C} language.", "The paradigm of {N} is {C}.", "{S} follows [a|the] {C} [paradigm|style].", "~{C} is the word for the style of {N}."),
        ("what [is the paradigm|paradigm is|programming paradigm is] [of|for] {N}", "[what|which] paradigm does {N} [follow|use|have]", "{N} [paradigm|style]", "~what style of programming is {N}")),
    ("comments", "G", (), (
        "Comments [start|begin] with {G} in {N}.", "[A comment|A remark] in {N} [begins|starts] with {G}.", "{S} [uses|takes] {G} for comments.", "~Text after {G} is a remark in {N}."),
        ("how [do you|do i|to] write [a comment|comments] in {N}", "how do comments [start|look|work] in {N}", "{N} [comments|comment syntax|comment sign]", "what starts a comment in {N}", "~how are remarks marked in {N}")),
    ("output", "W", (), (
        "{S} [prints|writes|shows|outputs] text [with|by|through] {W}.", "Output in {N} is [done|made|produced] [with|by|through] {W}.", "To print something, {N} [needs|uses|requires] {W}.", "~The result of {N} reaches the reader through {W}."),
        ("how [do you|do i|does one|to] print [text|something|] in {N}", "how does output work in {N}", "{N} [output|printing|print]", "how does {N} [print|output] text", "~by what means does {N} show text")),
    ("input", "W", (), (
        "{S} reads [input|its input] [with|from|through] {W}.", "Input [comes|arrives|is taken] from {W}[ in {N}|].", "The only [source|way] of input is {W}.", "~For reading, {N} relies on {W}."),
        ("how does input work in {N}", "how does {N} read input", "{N} [input|reading input]", "where does the input of {N} come from", "~how can {N} be fed with data")),
    ("limit", "K", (), (
        "A program [may not be|must not be|cannot be] longer than {K} [lines|characters|bytes|symbols].", "Programs in {N} are limited to {K} [lines|characters|bytes].", "The [maximum|largest] program size is {K} [lines|bytes|characters].",
        "~{K} lines are the most that {N} accepts."),
        ("how [long|big|large] can a {N} program be", "what is the [maximum|largest] [program size|size|length] in {N}", "{N} [size limit|maximum size|program limit]", "~upper bound of a program in {N}")),
    ("cells", "K", (), (
        "[Each|Every|A] [cell|slot|register] [holds|stores|has] [a number of |]{K} bits.", "The tape of {N} has {K} cells.", "{S} has {K} [cells|registers|slots|variables].", "~{K} cells make up the memory of {N}."),
        ("how many [cells|registers|slots|bits|variables] does {N} have", "how [big|large] is [a cell|the tape|the memory] [in|of] {N}", "{N} [cell size|number of cells|tape size]", "~what is the amount of cells of {N}")),
    ("license", "C", ("the public domain", "the MIT licence", "the GPL", "the Apache licence", "the BSD licence", "a Creative Commons licence", "a licence of its own", "the zlib licence"), (
        "{S} [is|was] [released|published|available|distributed] under {C}.", "The licence of {N} is {C}.", "The source code [is under|falls under] {C}.", "~{C} covers the sources of {N}."),
        ("[what|which] [licence|license] [is|does] {N} [under|have|use]", "{N} [licence|license]", "under [what|which] [licence|license] is {N}", "~may i copy {N} freely")),
    ("hello", "K", (), (
        "[A|The shortest|The] [hello world|Hello, world!|greeting] program [needs|has|takes|is] {K} [characters|bytes|lines|commands].", "Hello world in {N} [takes|needs] {K} [characters|lines|bytes].", "~Saying hello costs {K} bytes in {N}."),
        ("how long is [a |the |]hello world in {N}", "{N} hello world [length|size]", "how many [characters|bytes|lines] does hello world [need|take|have] in {N}", "~size of the greeting program of {N}")),
    ("error", "W", (), (
        "[On|After|In case of] an error, {N} [prints|shows|raises|returns] {W}.", "Errors [are shown as|lead to|cause|produce] {W}.", "When something goes wrong, {N} [shows|prints|answers with] {W}.", "~A mistake makes {N} respond with {W}."),
        ("what happens on an error in {N}", "how does {N} handle errors", "{N} [errors|error handling]", "what does {N} do when something goes wrong", "~how are mistakes treated by {N}")),
    ("variants", "T", (), (
        "A [well-known|popular|later|newer|common] [variant|dialect|extension|version] of {N} is {T}.", "{T} is a [dialect|variant|extension] of {N}.", "{S} has a [dialect|variant|successor] called {T}.", "~{T} grew out of {N}."),
        ("[what|which] [variants|dialects|extensions] [does {N} have|of {N} exist]", "is there a [dialect|variant|successor] of {N}", "{N} [dialects|variants|successor]", "~what grew out of {N}")),
    ("loops", "W", (), (
        "Loops [are written|are made|work|are built] [with|through|by] {W}.", "{S} [loops|repeats code] [by|with|through] {W}.", "[A loop|Repetition] in {N} [needs|uses|requires] {W}.", "~To repeat a step, {N} relies on {W}."),
        ("how [do loops work|are loops made|do you write a loop|to make a loop] in {N}", "{N} [loops|loop syntax|looping]", "does {N} have loops", "~how is repetition done in {N}")),
    ("website", "X", (), (
        "The [website|home page|project page] of {N} is at {X}.example.", "{S} [is hosted|lives] at {X}.example.", "~{X}.example is the address of {N}."),
        ("where [is|can i find] the [website|home page] of {N}", "{N} [website|home page|url]", "what is the [website|url|home page] of {N}", "~address of {N} on the web")),
    ("version", "V", (), (
        "The [latest|current|newest] [version|release] [of {N} |]is {V}.", "Version {V} is the [latest|current|newest] [one|release].", "{S} [is now at|has reached] version {V}.", "~{V} is what people run of {N} today."),
        ("what is the [latest|current|newest] version of {N}", "{N} [version|latest version|current release]", "which version is {N} at", "~how new is {N}")),
)
