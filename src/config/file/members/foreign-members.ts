// What other programs write into the files that they share with us.

/** Beside the servers. */
export const IGNORED_FILE_MEMBERS: readonly string[] = [
  '//',
  '_comment',
  'comment',
  'globalShortcut',
  'inputs',
  'isDxtAutoUpdatesEnabled',
  'isUsingBuiltInNodeForMcp',
  'preferences',
  'sandbox',
];

/** Of a server. They are about the program that asks its user, or about showing the server there. */
export const IGNORED_SERVER_MEMBERS: readonly string[] = [
  '//',
  '_comment',
  'alwaysAllow',
  'alwaysLoad',
  'autoApprove',
  'comment',
  'description',
  'dev',
  'displayName',
  'fromGalleryId',
  'gallery',
  'icon',
  'metadata',
  'note',
  'sandbox',
  'sandboxEnabled',
  'source',
  'trust',
  'version',
  'watchPaths',
];

const USE_EXCLUDE = 'Postern has "tools": { "exclude": ["name", …] } for this.';
const USE_INCLUDE = 'Postern has "tools": { "include": ["name", …] } for this.';
const USE_TYPE = 'Postern has "type" for this: "http", "sse" or "stdio".';
const NO_USER_LOGIN =
  'Postern cannot log in at this server for its users yet. Give it a token with "headers", or remove this.';

/** They would be missed: what they say, another member says here. */
export const REPLACED_SERVER_MEMBERS: Readonly<Record<string, string>> = {
  allowedTools: USE_INCLUDE,
  disabledTools: USE_EXCLUDE,
  enabled: 'Postern has "disabled": true for servers that are to be left out.',
  enabledTools: USE_INCLUDE,
  envFile: 'Postern reads no file for one server. Write its variables under "env".',
  excludeTools: USE_EXCLUDE,
  headersHelper: 'Postern runs no program for headers. Write them under "headers".',
  includeTools: USE_INCLUDE,
  oauth: NO_USER_LOGIN,
  transport: USE_TYPE,
  transportType: USE_TYPE,
};

/** Where other programs have their servers. */
export const REPLACED_FILE_MEMBERS: Readonly<Record<string, string>> = {
  context_servers: 'Postern has its servers under "mcpServers". Rename this member.',
  mcp: 'Postern has its servers under "mcpServers", at the top of the file. Move them there.',
  mcp_servers: 'Postern has its servers under "mcpServers". Rename this member.',
};
