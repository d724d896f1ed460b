import type { Node, ParseError } from 'jsonc-parser';
import type { Document, ErrorCode, LineCounter } from 'yaml';
import { createLoader } from '../../../platform/load-package.ts';

export type FileFormat = 'json' | 'yaml';

// Loaded on demand: many gateways have no configuration file.
const loadJson = createLoader<typeof import('jsonc-parser')>('jsonc-parser');
const loadYaml = createLoader<typeof import('yaml')>('yaml');

const describeBroken = (line: number, message: string): SyntaxResult => ({
  kind: 'broken',
  line,
  message,
});

/** Parses the file into a tree. Skips a byte order mark, which some editors write. */
export function readSyntax(text: string, format: FileFormat): SyntaxResult {
  const content = text.replace(/^\uFEFF/, '');
  if (content.trim() === '') return describeBroken(1, 'The file is empty.');
  try {
    return format === 'json' ? readJson(content) : readYaml(content);
  } catch (error) {
    // The parsing libraries are recursive, so deep nesting overflows the stack.
    if (error instanceof RangeError) return describeBroken(1, 'The file is nested too deep.');
    throw error;
  }
}

// Reads JSON with comments and trailing commas, as editors and other MCP programs write it.

function readJson(text: string): SyntaxResult {
  const errors: ParseError[] = [];
  const tree = loadJson().parseTree(text, errors, { allowTrailingComma: true });
  const findLine = createLineFinder(text);
  const [first] = errors;
  if (first !== undefined) return describeBroken(findLine(first.offset), describeError(first));
  return tree === undefined
    ? describeBroken(1, 'The file has no value.')
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
      members: children.flatMap(({ children: [name, value] = [] }) =>
        name === undefined || value === undefined
          ? []
          : {
              name: String(name.value),
              line: findLine(name.offset),
              value: toFileNode(value, findLine),
            },
      ),
    };
  if (node.type === 'array')
    return { kind: 'list', line, items: children.map((child) => toFileNode(child, findLine)) };
  return { kind: 'scalar', line, value: node.value };
}

function createLineFinder(text: string): FindLine {
  const ends = [...text.matchAll(/\r\n|\r|\n/g)].map(({ index, 0: end }) => index + end.length);
  return (offset) => {
    // Uses a binary search, since this runs for each value, and a file of a megabyte has hundreds of thousands.
    let [first, last] = [0, ends.length];
    while (first < last) {
      const middle = (first + last) >> 1;
      if (offset < (ends[middle] ?? 0)) last = middle;
      else first = middle + 1;
    }
    return first + 1;
  };
}

const describeError = ({ error }: ParseError) =>
  `This is not JSON: ${MESSAGES[loadJson().printParseErrorCode(error)] ?? 'it cannot be read from here on'}.`;

/** No message quotes the text, since it may be a secret. */
const MESSAGES: Readonly<Record<string, string>> = {
  InvalidSymbol:
    'this word is not a value. Text must be in double quotes; other values are numbers, true, false and null',
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

/** Limited, since the parser looks up each alias in the document and copies its value. */
const MAX_ALIASES = 100;
/** Limited, since nested aliases multiply. */
const MAX_NODES = 20_000;

/** Reads YAML 1.2: one document, with the types of JSON. */
function readYaml(text: string): SyntaxResult {
  const yaml = loadYaml();
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, {
    version: '1.2',
    schema: 'core',
    stringKeys: true,
    // Repeated names are reported by our own code, as they are for JSON.
    uniqueKeys: false,
    // The library's messages may quote the file, which may hold secrets.
    prettyErrors: false,
    resolveKnownTags: false,
    lineCounter: lines,
  });
  // An unknown tag is only a warning in the library.
  const [first] = [...document.errors, ...document.warnings];
  if (first !== undefined) return describeBroken(lines.linePos(first.pos[0]).line, describe(first));
  if (document.contents === null) return describeBroken(1, 'The file is empty.');
  return convertDocument(document, lines);
}

/** YAML content that has no JSON equivalent. Thrown and caught in this file. */
class YamlContentError extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

function convertDocument(document: Document, lines: LineCounter): SyntaxResult {
  const { isAlias, isMap, isScalar, isSeq } = loadYaml();
  let nodes = 0;
  let aliases = 0;

  function convert(node: unknown, lineAbove: number): FileNode {
    nodes += 1;
    const line = findLine(node, lineAbove);
    if (nodes > MAX_NODES) throw new YamlContentError(line, 'Aliases make the file too large.');
    if (isAlias(node)) {
      const target: unknown = node.resolve(document);
      aliases += 1;
      if (target === undefined) throw new YamlContentError(line, describe({ code: 'BAD_ALIAS' }));
      if (aliases > MAX_ALIASES)
        throw new YamlContentError(line, `The file has more than ${MAX_ALIASES} aliases (*name).`);
      return convert(target, line);
    }
    if (isMap(node))
      return {
        kind: 'object',
        line,
        members: node.items.map(({ key, value }) => {
          const keyLine = findLine(key, line);
          if (!isScalar(key) || typeof key.value !== 'string')
            throw new YamlContentError(keyLine, 'A name must be plain text.');
          return { name: key.value, line: keyLine, value: convert(value, keyLine) };
        }),
      };
    if (isSeq(node))
      return { kind: 'list', line, items: node.items.map((item) => convert(item, line)) };
    const plain = isScalar(node) ? node.value : null;
    if (!isPlain(plain)) throw new YamlContentError(line, 'This value is of no type of JSON.');
    return { kind: 'scalar', line, value: plain };
  }

  function findLine(node: unknown, lineAbove: number) {
    const range = isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? node.range : null;
    return range ? lines.linePos(range[0]).line : lineAbove;
  }

  try {
    return { kind: 'tree', root: convert(document.contents, 1) };
  } catch (error) {
    if (error instanceof YamlContentError) return describeBroken(error.line, error.message);
    throw error;
  }
}

const isPlain = (value: unknown): value is string | number | boolean | null =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value);

const describe = ({ code }: { readonly code: ErrorCode }) =>
  `This is not YAML that Postern reads: ${YAML_MESSAGES[code] ?? 'it cannot be read from here on'}.`;

const YAML_MESSAGES: Readonly<Partial<Record<ErrorCode, string>>> = {
  BAD_ALIAS: 'an alias (*name) needs an anchor (&name) before it',
  BAD_DQ_ESCAPE: 'a backslash in double quotes is written twice. Single quotes need none',
  BAD_INDENT: 'this line is indented wrongly',
  BAD_SCALAR_START: 'a text that begins with this character must be in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a text that contains a colon and a space must be in quotes',
  MISSING_CHAR: 'a character is missing here, such as a closing quote, a comma or a colon',
  MULTILINE_IMPLICIT_KEY: 'a name must be on one line, and a colon and a space must follow it',
  MULTIPLE_DOCS: 'only one document is allowed, so no second ---',
  NON_STRING_KEY: 'a name must be plain text',
  TAB_AS_INDENT: 'lines are indented by spaces, not by tabs',
  TAG_RESOLVE_FAILED: 'tags (!name) are not allowed',
  UNEXPECTED_TOKEN: 'this is not expected here. A text that begins with *, &, !, [ or { is quoted',
};

// The configuration file as a tree, from JSON or YAML: values with their line numbers.

export type FileNode =
  | {
      readonly kind: 'scalar';
      readonly line: number;
      readonly value: string | number | boolean | null;
    }
  | { readonly kind: 'list'; readonly line: number; readonly items: readonly FileNode[] }
  | ObjectNode;

export interface ObjectNode {
  readonly kind: 'object';
  readonly line: number;
  /** In the order of the file; a name may be repeated. */
  readonly members: readonly MemberNode[];
}

export interface MemberNode {
  readonly name: string;
  readonly line: number;
  readonly value: FileNode;
}

/** The tree, or the first syntax error, since later errors would be misleading. */
type SyntaxResult =
  | { readonly kind: 'tree'; readonly root: FileNode }
  | { readonly kind: 'broken'; readonly line: number; readonly message: string };

/** The value as `JSON.parse` returns it; for a repeated name, the last member wins. */
export function toValue(node: FileNode): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(toValue);
  return Object.fromEntries(node.members.map(({ name, value }) => [name, toValue(value)]));
}
