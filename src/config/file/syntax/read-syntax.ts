import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import type { FileNode, MemberNode, SyntaxResult } from './file-node.ts';
import { readYaml } from './read-yaml.ts';

export type FileFormat = 'json' | 'yaml';

const READERS: Readonly<Record<FileFormat, (text: string) => SyntaxResult>> = {
  json: readJson,
  yaml: readYaml,
};

/** The file as a tree. A byte order mark, which some editors write, is no part of it. */
export function readSyntax(text: string, format: FileFormat): SyntaxResult {
  const content = text.replace(/^\uFEFF/, '');
  if (content.trim() === '') return { kind: 'broken', line: 1, message: 'The file is empty.' };
  try {
    return READERS[format](content);
  } catch (error) {
    // The libraries follow what is nested by calling themselves.
    if (error instanceof RangeError)
      return { kind: 'broken', line: 1, message: 'The file is nested too deep.' };
    throw error;
  }
}

// JSON with comments and trailing commas, as editors and other MCP programs write it.

function readJson(text: string): SyntaxResult {
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true });
  const findLine = createLineFinder(text);
  const [first] = errors;
  if (first !== undefined)
    return { kind: 'broken', line: findLine(first.offset), message: describeError(first) };
  return tree === undefined
    ? { kind: 'broken', line: 1, message: 'The file has no value.' }
    : { kind: 'tree', root: toFileNode(tree, findLine) };
}

type FindLine = (offset: number) => number;

function toFileNode(node: Node, findLine: FindLine): FileNode {
  const line = findLine(node.offset);
  const children = node.children ?? [];
  if (node.type === 'object')
    return {
      kind: 'object',
      line,
      members: children.flatMap((child) => toMember(child, findLine) ?? []),
    };
  if (node.type === 'array')
    return { kind: 'list', line, items: children.map((child) => toFileNode(child, findLine)) };
  return { kind: 'scalar', line, value: node.value };
}

function toMember({ children }: Node, findLine: FindLine): MemberNode | undefined {
  const [name, value] = children ?? [];
  if (name === undefined || value === undefined) return undefined;
  return {
    name: String(name.value),
    line: findLine(name.offset),
    value: toFileNode(value, findLine),
  };
}

function createLineFinder(text: string): FindLine {
  const ends = [...text.matchAll(/\r\n|\r|\n/g)].map(({ index, 0: end }) => index + end.length);
  return (offset) => {
    // Asked for each value: a file of a megabyte has hundreds of thousands.
    let [first, last] = [0, ends.length];
    while (first < last) {
      const middle = (first + last) >> 1;
      if (offset < (ends[middle] ?? 0)) last = middle;
      else first = middle + 1;
    }
    return first + 1;
  };
}

const describeError = ({ error }: ParseError): string =>
  `This is not JSON: ${MESSAGES[printParseErrorCode(error)] ?? 'it cannot be read from here on'}.`;

/** Never with a part of the text, which may be a secret. */
const MESSAGES: Readonly<Record<string, string>> = {
  InvalidSymbol:
    'this word is no value. Text stands in double quotes, and other values are numbers, true, false and null',
  InvalidNumberFormat: 'this number is written in a way that JSON does not have',
  PropertyNameExpected: 'a name in double quotes is expected here',
  ValueExpected: 'a value is expected here',
  ColonExpected: 'a colon is expected between a name and its value',
  CommaExpected: 'a comma is missing before this',
  CloseBraceExpected: 'a } is missing here',
  CloseBracketExpected: 'a ] is missing here',
  EndOfFileExpected: 'the file has ended before this. Only one { … } is allowed',
  UnexpectedEndOfComment: 'a comment that begins here has no end',
  UnexpectedEndOfString: 'the quote that ends this text is missing',
  UnexpectedEndOfNumber: 'a digit is missing in this number',
  InvalidUnicode: '\\u must be followed by four hexadecimal digits',
  InvalidEscapeCharacter: 'a backslash in a text is written twice, for example "C:\\\\tools"',
  InvalidCharacter:
    'this character is not allowed here. In a text, a tab is written as \\t and a line break as \\n',
};
