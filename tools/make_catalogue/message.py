"""A message as its source writes it: constant pieces with slots between them."""
import re
from dataclasses import dataclass

SLOT = '\0'  # stands in a template, followed by the slot's kind and another SLOT

# What a slot holds, by the words in front of it or by the name of what fills it. The first that fits counts.
KINDS = [
    ('errno', r'\berrno|\bstrerror|error code|\berr(or)?no\b'),
    ('rank', r'\brank\b|\branks\b|\bpeer\b|rank_?$|\brank='),
    ('interface', r'\bifname|interface|\bdev(ice)? name|\bif_?name'),
    ('address', r'\baddr(ess)?\b|\bendpoint|\bip\b|sockaddr'),
    ('host', r'\bhost(name)?\b|\bnode\b'),
    ('path', r'\bfile(name)?\b|\bpath\b|\bdir(ectory)?\b|\bfolder\b'),
    ('port', r'\bport\b'),
    ('size', r'\bbytes\b|\bsize\b|\bcount\b|\bnumel'),
    ('duration', r'\btimeout\b|\bseconds\b|\bms\b|\btime\b|elapsed'),
    ('status', r'\bstatus\b|\bstate\b|\bresult\b|\bcode\b|\breturned\b|\berror\b'),
    ('device', r'\bdevice\b|\bgpu\b|\bcuda_?dev|\bhca\b|\bbus'),
    ('version', r'\bversion\b'),
]


def kind_of(before, argument=''):
    near = before[-24:].lower()
    for text in (argument.lower(), near):
        for kind, pattern in KINDS:
            if text and re.search(pattern, text):
                return kind
    return 'value'


def slot(before, argument=''):
    return SLOT + kind_of(before, argument) + SLOT


@dataclass(frozen=True)
class Message:
    file: str
    function: str
    severity: str  # error, warning, info
    template: str

    def pieces(self):
        """Constant pieces, one per line of what is printed, without what only fills."""
        parts = self.template.split(SLOT)[::2]
        return [piece.strip() for part in parts for piece in part.split('\n') if piece.strip()]

    def slots(self):
        return self.template.split(SLOT)[1::2]
