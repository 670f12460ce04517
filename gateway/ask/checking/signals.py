"""Words by which a sentence tells a reason, a place, what must be, or what is not."""

from __future__ import annotations

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
