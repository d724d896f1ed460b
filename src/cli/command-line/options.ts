// Options that several commands have.
import type { FlagOption, TextOption } from './command.ts';

export const CATALOG = {
  kind: 'text',
  value: 'FILE',
  summary: 'serve the tools, prompts and resources of FILE instead of the built-in ones',
  example: '--catalog catalog.js',
} as const satisfies TextOption;

export const CONFIG = {
  kind: 'text',
  value: 'FILE',
  summary: 'put the MCP servers of FILE (JSON or YAML) behind the gateway, by its rules',
  example: '--config mcp.json',
} as const satisfies TextOption;

const MAX_PORT = 65_535;

export const PORT = {
  kind: 'text',
  value: 'N',
  summary: 'listen on this port instead of PORT',
  example: '--port 3010',
  findProblem(text) {
    const isPort = /^[1-9]\d{0,4}$/.test(text) && Number(text) <= MAX_PORT;
    return isPort ? undefined : `${JSON.stringify(text)} is not a number from 1 to 65535.`;
  },
} as const satisfies TextOption;

/** Of `postern doctor` and `postern lock`: a user's access token. */
export const TOKEN = {
  kind: 'text',
  value: 'TOKEN',
  summary: 'an access token of a user; - reads it from standard input',
  example: '--token - <token.txt',
  takesStandardInput: true,
} as const satisfies TextOption;

export const TOKEN_FILE = {
  kind: 'text',
  value: 'FILE',
  summary: 'a file with this token: other users of the machine can read what follows --token',
  example: '--token-file token.txt',
  standardInput: '--token -',
} as const satisfies TextOption;

export const JSON_OUTPUT = {
  kind: 'flag',
  summary: 'print JSON, for programs',
} as const satisfies FlagOption;
