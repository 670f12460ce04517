"""Values that a stated fact has, or has not: places, and words that speak of something else."""

from __future__ import annotations

from gateway.base.patterns import any_case
from gateway.memory.learning.statements import UPPER

HOMES = (
    r"town|city|village|suburbs?|hamlet|house|home|cottage|cabin|flat|apartment|studio|condo|room|loft|dorm|hostel|tent|"
    r"van|boat|houseboat|trailer|farm|barn|mill|castle|commune|place|area|region|district|neighbou?rhood|street|province|"
    r"country(?:side)?|county|(?:north|south|east|west)(?:ern)?|cent(?:er|re)|middle|outskirts|mountains|hills|woods|desert|"
    r"valley|island|coast"
)
# Small letters that may be a place: one word that is no plural, or a kind of place or employer.
PLACED = any_case(
    rf"(?-i:[{UPPER}])\w|^[^\W\d]+(?<!s)$|"
    # Places with an s at the end, and what names of two words begin with.
    r"^(?:paris|brussels|texas|wales|athens|naples|dallas|vegas|leeds|reims|calais|cannes|nantes|tours|angers|limoges|"
    r"poitiers|orleans|versailles|amiens|tunis|honduras|cyprus|laos|mauritius|barbados|kansas|arkansas|illinois|"
    r"massachusetts|minneapolis|indianapolis|memphis|vilnius|kaunas|rhodes|damascus|lagos|caracas|columbus|cairns|"
    r"the (?:netherlands|philippines|bahamas|maldives|seychelles|states|highlands|alps|us|usa|uk)|"
    r"new (?:york|jersey|orleans|delhi|zealand|mexico|hampshire|england|haven)|"
    r"(?:san|santa|saint|st|los|las|buenos|el|la(?! la)|le|port|cape|rio|hong|kuala|abu|tel|den|south|north|east|west|"
    r"hà|hải|đà|hồ chí|sài|nha|quy|vũng|cần|bình|biên|thái|quảng|bắc|nam) \w+)$|"
    rf"\b(?:{HOMES}|"
    r"company|firm|startup|agency|bank|hospital|clinic|school|kindergarten|university|college|library|museum|office|shop|"
    r"store|bakery|caf[eé]|restaurant|bar|hotel|factory|plant|lab(?:oratory)?|institute|government|council|ministry|"
    r"police|army|navy|church|charity|ngo|airline|airport|railway|warehouse|supermarket|pharmacy|theat(?:re|er)|"
    r"newspaper|publisher|industry|sector|department|team|services?|care|sales|logistics|marketing|politics|robotics|"
    r"operations|resources|relations|communications|electronics|graphics|statistics|physics|sports|arts|nhà|quê|phố|"
    r"phường|quận|huyện|xã|tỉnh|thành|chung cư|căn hộ|ký túc|trọ|làng|thôn|"
    r"công ty|ngân hàng|bệnh viện|trường|quán|xưởng|"
    r"cửa hàng|tiệm|khách sạn|văn phòng|siêu thị|tổ chức|dự án|bưu điện|kho|sân bay|xí nghiệp)\b"
)

# Values about the conversation, another person, or nothing in particular.
TALK = any_case(
    r"\b(?:you|yours?|he|she|it|its|they|them|this|that|these|those|him|her|us|what|who|which|where|how|when|"
    r"(?:what|when|how|who)ever|(?:every|any|no|some)(?:thing|one|body)|bạn|nó|này|kia|đó|ấy|vậy|thế|"
    r"điều(?! (?:dưỡng|hòa|hoà|khiển|phối))|hắn|thì|"
    r"the (?:first|second|third|last|next|one|way|idea|other|latter|former|new|same))\b|"
    r"^(?:not|so|too|as|if|to be|like|"
    r"my life|one|both|all|another|more|fear|hope|peace|hell|denial|một (?:cái|chút)|được|là|cho|có|phải)\b"
)
UNCLEAR = any_case(rf"\b(?:i|mình|tôi|tớ)\b|{TALK.pattern}")
NO_PLACE = any_case(
    r"^(?:my|our|your|sin|limbo|chaos|misery|poverty|luxury|comfort|secret|silence|exile|danger|sợ|"
    r"an? (?:\w+ )?(?:third|another|different|foreign|new|strange) country|"
    r"constant|dreams?|night|pain|interesting|\d|linux|windows|mac\w*|neo?vim|vim|emacs|vs ?code|"
    r"react|vue|angular|svelte|rust|go|golang|python|java\w*|typescript|kotlin|swift|postgres\w*|mysql|sqlite|docker|"
    r"kubernetes|k8s|podman|aws|azure|gcp|github|gitlab|arch|ubuntu|debian|fedora|nix\w*|firefox|chrome|brave|"
    r"android|iphone|ios|pnpm|npm|yarn|poetry|uv|the (?:cloud|left|right|front|back|top|end|office|future|past)|"
    r"a (?:dream|simulation|bubble|different|better)|scratch|nhà|văn phòng|công ty|trường|ngoài|trên|dưới|"
    r"trong|đây|đó|kia|"
    r"(?:an?|another|the) (?:[\w-]+ ){1,2}(?:flat|house|apartment|place|home|room|studio|office|desk|team|job|role|"
    r"project|server|host|laptop|provider|bank|plan|version|framework)(?=$| (?:last|this|yesterday|today|recently)))\b"
)
NO_NAME = any_case(
    r"^(?:(?-i:a|an|the)|later|back|when|if|at|on|in|tomorrow|tonight|today|soon|again|asap|crazy|maybe|old|whatever|not|"
    r"unknown|hard|easy|important|mud|there|here|being|is|was|by|for|pronounced|spelled|too|very|so|never|your|what|"
    r"now|anytime|sir|away|up|off|out|to|into|from|mon(?:day)?|tuesday|wednesday|thursday|friday|saturday|sunday|lazy|stupid|weird|biased)\b"
)
# "This is John's Distribution", "I'm from Lexington Software"
ORGANIZATION = (
    r"['’]s \w|\b(?:company|co|corp(?:oration)?|inc(?:orporated)?|ltd|llc|gmbh|university|college|bank|hotel|hospital|"
    r"clinic|agency|group|software|enterprises|technologies|solutions|services|department|office|desk|associates|partners|sons)\b\.?$"
)
NO_ALLERGY = any_case(
    r"^(?:mondays?|work|people|bullshit|nonsense|mornings?|meetings?|exercise|stupid\w*|getting up|"
    r"dậy sớm|đi làm|công việc|thứ hai|họp|người)\b"
)
NO_WORKPLACE = any_case(
    r"^(?:night|the moment|last|free|first|now|once|all|general|theory|practice|peace|fun|food|money|nothing|exposure|"
    r"spite|love|a living|vui)\b"
)
NO_VEHICLE = any_case(r"^(?:hard|bus|train|point|lot|bit|few)\b")

MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*"
LANGUAGE = (
    r"(?P<what>english|french|german|spanish|italian|portuguese|dutch|vietnamese|chinese|mandarin|cantonese|japanese|"
    r"korean|russian|ukrainian|polish|czech|swedish|norwegian|danish|finnish|turkish|arabic|hindi|thai|greek|hebrew)"
)
_PROFESSION = (
    r"(?:[\w-]+ ){0,3}?(?:nurse|doctor|surgeon|vet|veterinarian|teacher|tutor|professor|lecturer|student|"
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
    r"nhà văn|họa sĩ|ca sĩ|kiến trúc sư|nội trợ|"
    r"\w+(?:ologist|ographer|ometrist|ienist|opractor)|"
    r"\w+ (?:worker|operator|officer|assistant|instructor|coach|trainer|inspector|broker|planner|supervisor|"
    r"porter|fitter|controller|advis[eo]r|buyer)|security guard|(?:travel|estate|insurance) agent)\b"
)
PROFESSION = rf"(?P<what>{_PROFESSION}.*)"
A_PROFESSION = rf"(?P<what>{_PROFESSION})"
BUSINESS = (
    r"(?P<what>(?:[\w-]+ ){0,3}?(?:bakery|shop|store|caf[eé]|restaurant|company|business|farm|studio|agency|startup|"
    r"clinic|hotel|bar|salon|school|workshop|brewery|gallery|pharmacy)\b.*)"
)
ILLNESS = (
    r"(?P<what>(?:type [12] )?diabetes|asthma|adhd|epilepsy|migraines?|arthritis|hypertension|high blood pressure|"
    r"c(?:o)?eliac(?: disease)?|crohn['’]?s(?: disease)?|dyslexia|tinnitus|eczema|an(?:a)?emia|hay fever|ibs|lupus|"
    r"insomnia|psoriasis|"
    r"gout|sciatica|glaucoma|endometriosis|osteoporosis|sleep apn(?:o)?ea|tiểu đường|hen suyễn|cao huyết áp|"
    r"huyết áp cao|"
    r"viêm xoang|viêm mũi|đau dạ dày|trào ngược|mất ngủ|đau nửa đầu|thoái hóa khớp|suy thận|"
    r"hen|gút|loãng xương|thiếu máu|viêm khớp)"
)
CODE_LANGUAGE = (
    r"(?P<what>python|javascript|typescript|kotlin|java|swift|rust|golang|go|ruby|php|perl|scala|haskell|elixir|erlang|"
    r"clojure|lua|julia|c|c\+\+|c#|f#|ocaml|zig|dart|fortran|cobol|r|sql|bash)"
)
# People whom somebody has one of at a time, and others, beside the closest.
PERSON = (
    r"(?P<who>manager|boss|supervisor|"
    r"landlord|landlady|doctor|gp|dentist|therapist|psychologist|physio|coach|trainer|tutor|teacher|professor|"
    r"advis[eo]r|mentor|accountant|lawyer|editor|vet|hairdresser|roommate|flatmate|housemate|best friend|team lead|"
    r"line manager|nanny|cleaner)"
)
PEOPLE = (
    r"(?P<who>baby|twin|aunt|uncle|"
    r"cousin|nephew|niece|grandson|granddaughter|grandma|grandpa|grandmother|grandfather|stepson|stepdaughter|"
    r"(?:mother|father|brother|sister|son|daughter)-in-law|colleague|coworker|co-worker|classmate|neighbou?r|friend)"
)
PERSON_VI = (
    r"(?P<who>vk|ck|ny|người yêu|ba|má|sếp|quản lý|trưởng phòng|chủ nhà|bác sĩ|nha sĩ|"
    r"luật sư|gia sư|huấn luyện viên|(?:gv|giáo viên|cô|thầy)(?: chủ nhiệm| hướng dẫn)?|bạn cùng phòng|bạn thân)"
)
BODY = (
    r"(?:knees?|back|hips?|shoulders?|ankles?|wrists?|neck|elbows?|foot|feet|legs?|arms?|fingers?|toes?|heart|eyes|"
    r"ribs?|spine|stomach|lungs?|kidneys?|liver|hearing|eyesight|collarbone|disc|acl|tendon|ligament)"
)
# Endings of drugs' international names, and some that have none.
MEDICINE = (
    r"(?P<what>\w+(?:pril|sartan|statin|formin|olol|azole|cillin|mycin|cycline|oxacin|dipine|tidine|oxetine|triptyline|"
    r"azepam|zolam|thyroxine|parin|gliptin|glutide|profen|umab|ximab|zumab|asone|solone|sone|traline|opram|tadine|"
    r"tirizine|xaban|grel|semide|thiazide|phylline|terol|setron|triptan|apine|idone|epam|bital)|"
    r"insulin|lithium|aspirin|paracetamol|warfarin|antidepressants?|antihistamines?|blood thinners?|beta blockers?|"
    r"statins|iron (?:pills|tablets))"
)
# A model, a make or a version, rather than "a mess".
MODEL = any_case(
    r"\d|(?-i:[A-Z])(?!\w+day\b)|\b(?:thinkpad|iphone|ipad|macbook|chromebook|pixel|galaxy|dell|lenovo|nokia)\b"
)
DISEASE_VI = (
    r"(?P<what>(?:bệnh|viêm|đau|suy|rối loạn|thiếu|hở|tim|hen|cận|viễn|loạn|dị tật|điếc|mù|liệt|sỏi|gút|ung thư|"
    r"béo phì|trầm cảm|thoát vị|tật)\b.*?)"
)
