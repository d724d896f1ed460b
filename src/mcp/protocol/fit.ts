// Validates servers' responses against tables of members: first the rules, then the tables for MCP. Invalid or `null` members
// that MCP makes optional are removed, so that clients still get the rest.

import { JsonNumber } from '../../platform/exact-json.ts';
import { isObject } from '../../platform/json.ts';
import type { ValueEdit } from '../../platform/noted-json.ts';
import type { JsonPath } from '../../platform/splice-json.ts';
import type { ListKind } from './list-kinds.ts';
import type { Era } from './revisions.ts';

/** True if the value is valid once the edits in `found` are made. */
type Fit = (value: unknown, found: Findings) => boolean;

/** The invalid parts of one value. */
export class Findings {
  readonly list: ValueEdit[] = [];
  /** The path to an invalid part that cannot be removed. */
  misfit: JsonPath | undefined = undefined;
  private readonly path: (string | number)[] = [];

  /** Checks a required member. */
  fits(key: string | number, value: unknown, rule: Fit): boolean {
    this.path.push(key);
    const isFitting = rule(value, this);
    if (!isFitting) this.misfit ??= [...this.path];
    this.path.pop();
    return isFitting;
  }

  /** Checks a member that can be removed or rewritten. */
  fitOrMend(key: string | number, value: unknown, rule: Fit, rewrite?: ValueEdit['rewrite']): void {
    const count = this.list.length;
    if (this.fits(key, value, rule)) return;
    this.misfit = undefined;
    // Findings within it go with it.
    this.list.length = count;
    this.list.push({ path: [...this.path, key], rewrite });
  }
}

type Members = Readonly<Record<string, Fit>>;

interface ObjectMembers {
  readonly required?: Members;
  readonly optional?: Members;
  /** May be absent, but is never removed when invalid: the object would mean something else. */
  readonly whole?: Members;
}

function object({ required = {}, whole = {}, optional = {} }: ObjectMembers): Fit {
  const members = Object.entries({ required, whole, optional }).flatMap(([presence, rules]) =>
    Object.entries(rules).map(([name, rule]) => ({ name, rule, presence })),
  );
  return (value, found) => {
    if (!isObject(value)) return false;
    for (const { name, rule, presence } of members) {
      const member = value[name];
      if (presence !== 'required' && member === undefined) continue;
      if (presence === 'optional' || (presence === 'whole' && member === null)) {
        found.fitOrMend(name, member, rule);
      } else if (!found.fits(name, member, rule)) return false;
    }
    return true;
  };
}

const text: Fit = (value) => typeof value === 'string';
const flag: Fit = (value) => typeof value === 'boolean';
const anyObject: Fit = (value) => isObject(value);

const oneOf =
  (...texts: readonly string[]): Fit =>
  (value) =>
    texts.some((one) => one === value);

const number =
  (isRight: (value: number) => boolean): Fit =>
  (value) => {
    const plain = value instanceof JsonNumber ? value.valueOf() : value;
    return typeof plain === 'number' && isRight(plain);
  };

/** Valid or invalid as a whole. */
const listOf =
  (fit: Fit): Fit =>
  (value, found) =>
    Array.isArray(value) && value.every((one, index) => found.fits(index, one, fit));

/** Invalid entries are removed or rewritten. */
const mendedList =
  (fit: Fit, rewrite?: ValueEdit['rewrite']): Fit =>
  (value, found) => {
    if (!Array.isArray(value)) return false;
    for (const [index, one] of value.entries()) found.fitOrMend(index, one, fit, rewrite);
    return true;
  };

/** Members of any name; invalid ones are removed. */
const recordOf =
  (fit: Fit): Fit =>
  (value, found) => {
    if (!isObject(value)) return false;
    for (const [name, one] of Object.entries(value)) found.fitOrMend(name, one, fit);
    return true;
  };

const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** ISO 8601 with a time zone, and an existing day. */
const dateTime: Fit = (value) => {
  const [, year, month, day] = (typeof value === 'string' && DATE_TIME.exec(value)) || [];
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  return date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
};

/** Only this many characters of a long value are checked: common mistakes, such as a `data:` URL, show at its start. */
const LOOKED_AT = 1024;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;
const BASE64_BEGINNING = /^[A-Za-z0-9+/\t\n\f\r ]*$/;

/** As `atob` accepts it. */
const base64: Fit = (value) => {
  if (typeof value !== 'string') return false;
  return value.length > LOOKED_AT
    ? BASE64_BEGINNING.test(value.slice(0, LOOKED_AT))
    : BASE64.test(value.replace(/[\t\n\f\r ]/g, ''));
};

// MCP, the schemas of all revisions: entries of lists, and results. A member has the same form in all revisions that have it: one
// table serves them all; differences of the session era in schemas are in catalog/list-page.ts.

const icon = object({
  required: { src: text },
  optional: { mimeType: text, sizes: listOf(text), theme: oneOf('light', 'dark') },
});

const role = oneOf('user', 'assistant');

const annotations = object({
  optional: {
    audience: listOf(role),
    priority: number((value) => value >= 0 && value <= 1),
    lastModified: dateTime,
  },
});

const toolAnnotations = object({
  optional: {
    title: text,
    readOnlyHint: flag,
    destructiveHint: flag,
    idempotentHint: flag,
    openWorldHint: flag,
  },
});

const described: Members = {
  title: text,
  description: text,
  icons: mendedList(icon),
  _meta: anyObject,
};

const schemaMembers: Members = {
  $schema: text,
  properties: recordOf((value, found) => anyObject(value, found) || flag(value, found)),
  required: listOf(text),
};

const argument = object({
  required: { name: text },
  optional: { title: text, description: text, required: flag },
});

const resourceMembers: Members = {
  ...described,
  mimeType: text,
  size: number(Number.isInteger),
  annotations,
};

/** Entries of lists. */
export const LISTED: Readonly<Record<ListKind, Fit>> = {
  tools: object({
    required: {
      name: text,
      inputSchema: object({ required: { type: oneOf('object') }, optional: schemaMembers }),
    },
    optional: {
      ...described,
      outputSchema: object({ optional: schemaMembers }),
      annotations: toolAnnotations,
      execution: object({ optional: { taskSupport: oneOf('forbidden', 'optional', 'required') } }),
    },
  }),
  prompts: object({
    required: { name: text },
    whole: { arguments: listOf(argument) },
    optional: described,
  }),
  resources: object({ required: { uri: text, name: text }, optional: resourceMembers }),
  templates: object({
    required: { uriTemplate: text, name: text },
    optional: { ...described, mimeType: text, annotations },
  }),
  // SEP-2640.
  skills: object({
    required: { uri: text, frontmatter: anyObject },
    optional: { ...described, annotations },
  }),
};

const contentMembers: Members = { annotations, _meta: anyObject };

const read = object({
  required: { uri: text },
  optional: { mimeType: text, _meta: anyObject, text, blob: base64 },
});

/** With text or bytes. */
const resourceContents: Fit = (value, found) =>
  read(value, found) && (text(Object(value).text, found) || base64(Object(value).blob, found));

const CONTENT: Readonly<Record<string, Fit>> = {
  text: object({ required: { text }, optional: contentMembers }),
  image: object({ required: { data: base64, mimeType: text }, optional: contentMembers }),
  audio: object({ required: { data: base64, mimeType: text }, optional: contentMembers }),
  resource: object({ required: { resource: resourceContents }, optional: contentMembers }),
  resource_link: object({ required: { uri: text, name: text }, optional: resourceMembers }),
};

const content: Fit = (value, found) => {
  const { type } = Object(value);
  const ofType = typeof type === 'string' && Object.hasOwn(CONTENT, type) && CONTENT[type];
  return ofType ? ofType(value, found) : false;
};

// A part that cannot be repaired reaches the model as the text that the server sent.

const toContent = (json: string) => JSON.stringify({ type: 'text', text: json });

/** Some servers send a string, or a single part, instead of a list. */
function toContents(json: string) {
  if (json === 'null') return '[]';
  return `[${json.startsWith('"') ? `{"type":"text","text":${json}}` : toContent(json)}]`;
}

const message: Fit = (value, found) => {
  if (!isObject(value) || value.role === undefined || value.content === undefined) return false;
  found.fitOrMend('role', value.role, role, () => '"user"');
  found.fitOrMend('content', value.content, content, toContent);
  return true;
};

const contentList = mendedList(content, toContent);

const toolResult = (structuredContent: Members): Fit => {
  const members = object({ optional: { ...structuredContent, isError: flag, _meta: anyObject } });
  return (value, found) => {
    const { content: parts } = Object(value);
    if (parts !== undefined) found.fitOrMend('content', parts, contentList, toContents);
    return members(value, found);
  };
};

const promptResult = object({
  required: {
    messages: mendedList(message, (json) => `{"role":"user","content":${toContent(json)}}`),
  },
  optional: { description: text, _meta: anyObject },
});

const resourceResult = object({
  required: { contents: mendedList(resourceContents) },
  optional: { _meta: anyObject },
});

/** Results, by method and the era of the client. */
export const RESULTS: ReadonlyMap<string, Readonly<Record<Era, Fit>>> = new Map([
  [
    'tools/call',
    {
      session: toolResult({ structuredContent: anyObject }),
      // Since 2026-07-28 it may be any value.
      stateless: toolResult({}),
    },
  ],
  ['prompts/get', { session: promptResult, stateless: promptResult }],
  ['resources/read', { session: resourceResult, stateless: resourceResult }],
]);
