"""Messages of C and C++ sources: the string literals in the arguments of logging and checking macros."""
import re

from message import Message, slot

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
FORMAT = re.compile(r'%(?!%)[-+ #0-9.*]*(?:hh|ll|[hlzjt])?[diouxXeEfgGcsp]|\{[^{}\n]{0,20}\}')
FUNCTION = re.compile(r'(?:^|[\s*&:>~])([A-Za-z_~][A-Za-z0-9_]*)\s*\([^;{}]*\)[^;{}()]*\{', re.S)
ESCAPES = {'n': '\n', 't': ' ', '"': '"', '\\': '\\', "'": "'", 'r': '\n'}


def without_comments(text):
    """Comments become blanks of the same length; literals stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
    return pattern.sub(lambda m: m.group(0) if m.group(0)[0] in '"\'' else re.sub(r'[^\n]', ' ', m.group(0)), text)


def end_of_call(text, at):
    """Behind the bracket that closes the one at `at`; -1: none does within 4000 bytes."""
    depth, i, end = 0, at, min(len(text), at + 4000)
    while i < end:
        c = text[i]
        if c == '"':
            found = LITERAL.match(text, i)
            i = found.end() if found else i + 1
            continue
        depth += (c == '(') - (c == ')')
        i += 1
        if depth == 0:
            return i
    return -1


def arguments(text):
    """Divided at commas that stand in no bracket and no literal."""
    out, depth, begin, i = [], 0, 0, 0
    while i < len(text):
        c = text[i]
        if c == '"':
            found = LITERAL.match(text, i)
            i = found.end() if found else i + 1
            continue
        depth += (c in '([{') - (c in ')]}')
        if c == ',' and depth == 0:
            out.append(text[begin:i])
            begin = i + 1
        i += 1
    out.append(text[begin:])
    return [argument.strip() for argument in out]


def unescape(literal):
    return re.sub(r'\\(.)', lambda m: ESCAPES.get(m.group(1), ' '), literal)


def with_slots(constant, fillers):
    """printf's and fmt's places become slots, typed by the words in front of them or by what fills them."""
    out, last = '', 0
    for found in FORMAT.finditer(constant):
        out += constant[last:found.start()]
        out += slot(out, fillers.pop(0) if fillers else '')
        last = found.end()
    return (out + constant[last:]).replace('%%', '%')


def template_of(parts, formatted):
    """parts: arguments, or operands of <<. Adjacent literals are one; anything else fills a slot."""
    out, fillers = '', []
    if formatted:
        for i, part in enumerate(parts):
            if '"' in part:
                fillers = list(parts[i + 1:])
                parts = parts[i:i + 1]
                break
        else:
            return ''
    for part in parts:
        literals = LITERAL.findall(part)
        rest = LITERAL.sub('', part).strip()
        if literals and (not rest or re.fullmatch(r'(PRI[a-zA-Z0-9]+\s*)+', rest) or formatted):
            out += with_slots(unescape(''.join(literals)), fillers)
        else:
            out += slot(out, rest)
    return out


def function_at(heads, at):
    name = ''
    for begin, found in heads:
        if begin > at:
            break
        name = found
    return name


def messages(path, text, macros):
    """macros: name -> (severity, arguments in front of the text, formatted). A name that ends in "<<" is a stream."""
    text = without_comments(text)
    keywords = {'if', 'for', 'while', 'switch', 'catch', 'return', 'sizeof', 'defined', 'do', 'else'}
    heads = [(m.start(1), m.group(1)) for m in FUNCTION.finditer(text) if m.group(1) not in keywords and not m.group(1).isupper()]
    for name, (severity, skipped, formatted) in macros.items():
        stream = name.endswith('<<')
        pattern = re.escape(name[:-2]) if stream else r'\b' + name + r'\s*\('
        for found in re.finditer(pattern, text):
            if stream:
                end = text.find(';', found.end())
                parts = [part.strip() for part in text[found.end():end].split('<<')[1:]] if end > 0 else []
            else:
                end = end_of_call(text, found.end() - 1)
                parts = arguments(text[found.end():end - 1].replace('\\\n', ' '))[skipped:] if end > 0 else []
            template = template_of(parts, formatted) if parts else ''
            if template:
                yield Message(path, function_at(heads, found.start()), severity, template)
