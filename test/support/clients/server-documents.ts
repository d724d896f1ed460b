// What the published schemas of server cards (v2) and of server.json (2025-12-11) demand: members, patterns and lengths, without
// their texts. A card is closed: a member that it does not know is wrong. So is one of server.json here, of those that the
// gateway writes.
import { Ajv2020 } from 'ajv/dist/2020.js';

const string = (rules: object = {}) => ({ type: 'string', ...rules });
const closed = (required: readonly string[], properties: object) => ({
  type: 'object',
  additionalProperties: false,
  required,
  properties,
});

const IDENTITY = {
  name: string({ minLength: 3, maxLength: 200, pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$' }),
  title: string({ minLength: 1, maxLength: 100 }),
  description: string({ minLength: 1, maxLength: 100 }),
  version: string({ maxLength: 255, not: { pattern: '^[~^<>=]|[x*]$' } }),
  websiteUrl: string({ pattern: '^https?://' }),
};

const icon = (src: object) =>
  closed(['src'], {
    src: string(src),
    mimeType: string(),
    sizes: { type: 'array', items: string() },
    theme: { enum: ['light', 'dark'] },
  });

const url = string({ pattern: '^https?://[^\\s]+$' });

const ajv = new Ajv2020({ allErrors: true });

const isCard = ajv.compile(
  closed(['$schema', 'description', 'name', 'version'], {
    $schema: { const: 'https://static.modelcontextprotocol.io/schemas/v2/server-card.schema.json' },
    ...IDENTITY,
    icons: { type: 'array', items: icon({}) },
    remotes: {
      type: 'array',
      items: closed(['type', 'url'], {
        type: { enum: ['streamable-http', 'sse'] },
        url,
        supportedProtocolVersions: { type: 'array', items: string() },
      }),
    },
  }),
);

const isServerJson = ajv.compile(
  closed(['$schema', 'description', 'name', 'version'], {
    $schema: {
      const: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    },
    ...IDENTITY,
    icons: { type: 'array', items: icon({ maxLength: 255, pattern: '^https://' }) },
    remotes: {
      type: 'array',
      items: closed(['type', 'url'], { type: { const: 'streamable-http' }, url }),
    },
  }),
);

const findProblems = (check: typeof isCard) => (document: unknown) =>
  check(document)
    ? []
    : (check.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);

export const findCardProblems = findProblems(isCard);
export const findServerJsonProblems = findProblems(isServerJson);
