"""Expressions of several syllables that mean the same in different regions: Vietnamese has others in north and south.

A synonym of one word is in :mod:`gateway.ask.text.synonyms`; these cannot be told word by word.
"""

from __future__ import annotations

import re

from gateway.base.patterns import any_case

# The one that the others are read as comes first.
_GROUPS = tuple(
    tuple(map(str.strip, line.split(",")))
    for line in """
    dưa leo, dưa chuột
    hoa, bông hoa, bông
    thu hoạch, hái
    khoảng cách, cách nhau
    khổ qua, mướp đắng
    đậu phộng, hạt lạc, củ lạc
    bắp, ngô
    trái cây, hoa quả
    rau mùi, ngò rí
    lá lốt, lá lốp
    củ mì, sắn
    khoai môn, khoai sọ
    heo, lợn
    ô tô, xe hơi
    xe máy, xe gắn máy, mô tô
    máy bay, phi cơ
    tàu hỏa, tàu lửa, xe lửa
    bệnh viện, nhà thương
    bác sĩ, thầy thuốc
    máy tính xách tay, laptop
    máy tính, máy vi tính
    điện thoại di động, di động
    mật khẩu, password
    thư điện tử, email
    mạng không dây, wifi
    nghỉ phép, ngày phép, phép năm
    ốm, bị bệnh, đau ốm
    tiền lương, lương
    nhân viên, người lao động
    đăng ký, ghi danh
    hủy, hủy bỏ
    chi phí, phí tổn
    sinh viên, học viên
    trẻ em, trẻ con, con nít
    nhà vệ sinh, phòng vệ sinh, toa lét
    chén, bát
    muỗng, thìa
    sửa chữa, sửa
    hỏng, hư
    thành lập, lập ra, ra đời
    """.strip().splitlines()
)
_ALL = {each: group for group in _GROUPS for each in group}
# The longest first; a syllable is bounded by what is no letter.
_EXPRESSION = any_case(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(_ALL, key=len, reverse=True)))})(?!\w)")
_VIETNAMESE = any_case("[đăơưạ-ỹ]")  # else "email" would be read as Vietnamese


def as_in_one_region(text: str) -> str:
    """A Vietnamese text with one of the expressions that mean the same; any other text as it is."""
    if not _VIETNAMESE.search(text):
        return text
    return _EXPRESSION.sub(lambda found: _ALL[found[0].casefold()][0], text)


def other_expressions(question: str) -> list[str]:
    """Regional variants of the expressions of a Vietnamese question, for the search."""
    if not _VIETNAMESE.search(question):
        return []
    found = [each[0].casefold() for each in _EXPRESSION.finditer(question)]
    return [other for each in dict.fromkeys(found) for other in _ALL[each] if other != each]
