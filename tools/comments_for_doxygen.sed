# Headers are written for people who read them, with plain comments. Doxygen wants "///" before what is described, "///<" behind it, and
# "@file" in the comment that opens a file. Lines of code in a comment, three blanks in, become code in its Markdown.
1s|^// |/// @file\n/// |
s|^( *)//( {3,})(.*)$|\1///     \2\3|
s|^( *)//( .*)?$|\1///\2|
s|^([^}].*[^ /:]) +// (.*)$|\1  ///< \2|
