"""Messages of Python sources: what is raised, asserted, warned of, and logged."""
import ast
import re

from c_sources import with_slots
from message import Message, slot

LOGGED = {'warning': 'warning', 'warn': 'warning', 'warning_once': 'warning', 'error': 'error', 'critical': 'error', 'exception': 'error',
          'fatal': 'error', 'rank_zero_warn': 'warning', 'rank_zero_error': 'error', 'warning_rank0': 'warning',
          'warning_rank0_once': 'warning', 'log_single_rank_warning': 'warning'}


def template_of(node):
    """None: no text can be told."""
    if isinstance(node, ast.Constant):
        return with_slots(node.value, []) if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        out = ''
        for value in node.values:
            out += value.value if isinstance(value, ast.Constant) else slot(out, ast.unparse(value.value))
        return out
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = template_of(node.left), template_of(node.right)
        if left is None and right is None:
            return None
        return (slot('', ast.unparse(node.left)) if left is None else left) + (slot(left or '', '') if right is None else right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return template_of(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ('format', 'strip', 'join'):
        return template_of(node.func.value)
    return None


def said_by(node):
    """(severity, the node of the text) of a statement that tells the user something; None: it does not."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
        return 'error', node.exc.args[0]
    if isinstance(node, ast.Assert) and node.msg is not None:
        return 'error', node.msg
    if isinstance(node, ast.Call) and node.args:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ''
        if name in LOGGED:
            return LOGGED[name], node.args[0]
    return None


def messages(path, text):
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    names = {}
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            own = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            names[child] = node.name if own else names.get(node, '')
        said = said_by(node)
        template = template_of(said[1]) if said else None
        if template and re.search('[A-Za-z]', template):
            yield Message(path, names.get(node, ''), said[0], template)
