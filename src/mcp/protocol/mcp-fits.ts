// MCP, the schemas of all revisions: what entries of lists and results are made of. A member has one form in each revision that
// has it, so that one table serves all of them; what the session era wants otherwise of schemas is in catalog/list-page.ts.
import { isObject } from '../../platform/json.ts';
import {
  anyObject,
  base64,
  dateTime,
  type Fit,
  flag,
  listOf,
  type Members,
  mendedList,
  number,
  object,
  oneOf,
  recordOf,
  text,
} from './fit.ts';
import type { ListKind } from './list-kinds.ts';
import type { Era } from './revisions.ts';

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
      execution: object({
        optional: { taskSupport: oneOf('forbidden', 'optional', 'required') },
      }),
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

/** With a text, or bytes. */
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

// A part that nothing can be left out of reaches the model as what the server wrote: as text.

const toContent = (json: string): string => JSON.stringify({ type: 'text', text: json });

/** Some servers write the text itself, or one part alone, in place of a list. */
function toContents(json: string): string {
  if (json === 'null') return '[]';
  return `[${json.startsWith('"') ? `{"type":"text","text":${json}}` : toContent(json)}]`;
}

const toUser = (): string => '"user"';
const toMessage = (json: string): string => `{"role":"user","content":${toContent(json)}}`;

const message: Fit = (value, found) => {
  if (!isObject(value) || value.role === undefined || value.content === undefined) return false;
  found.fitOrMend('role', value.role, role, toUser);
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
  required: { messages: mendedList(message, toMessage) },
  optional: { description: text, _meta: anyObject },
});

const resourceResult = object({
  required: { contents: mendedList(resourceContents) },
  optional: { _meta: anyObject },
});

/** Results of what is called, by its method and the era of the client. */
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
