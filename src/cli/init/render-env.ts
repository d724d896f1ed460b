// `.env`, as `postern init` writes it.
import { generateSecret } from '../../platform/ids.ts';
import { CommandError } from '../command/errors.ts';
import type { Answers } from './answers.ts';
import { renderEnvLine } from './env-line.ts';
import { findProvider, type KnownProvider } from './providers.ts';

/** What the gateway refuses, and asks to replace (config/problems.ts). */
const PLACEHOLDER = '…';

export interface EnvFacts {
  readonly configFile: string;
  /** The file of the first tool, where there is one. */
  readonly catalogFile: string | undefined;
  /** Taken from the file with servers, which then names the variables. */
  readonly secrets: Readonly<Record<string, string>>;
}

export function renderEnv(
  answers: Answers,
  { configFile, catalogFile, secrets }: EnvFacts,
): string {
  const provider = findProvider(answers.provider);
  const isShared = answers.store === 'redis';
  return `# Settings of Postern: \`postern config --all\` prints them all. Secrets stand here: keep this file out of Git.
POSTERN_CONFIG=${configFile}
${catalogFile === undefined ? '' : `POSTERN_CATALOG=${catalogFile}\n`}
# The address at which users reach it, if that is not http://localhost and PORT:
#BASE_URL=https://mcp.example.com
${provider === undefined ? NO_PROVIDER : renderLogin(provider, answers)}${
  isShared
    ? `
# Sessions and logins of all processes. Each of them has the same two lines.
${write('REDIS_URL', answers.redisUrl)}
OAUTH_STATE_SECRET=${generateSecret()}
`
    : ''
}${renderSecrets(secrets)}`;
}

const NO_PROVIDER = `
# Until these are set, \`postern dev\` has a provider of its own, which accepts any name, and \`postern start\`
# does not start. What your provider needs: the page /providers of the
# gateway that it starts, http://localhost:3000/providers (in a checkout: docs/providers.md).
#OAUTH_MODE=broker
#OIDC_ISSUER=https://id.example.com
#OAUTH_CLIENT_ID=
#OAUTH_CLIENT_SECRET=
`;

const renderLogin = (
  { title, profile, issuer, issuerExample, audienceExample, addedScopes, page }: KnownProvider,
  answers: Answers,
): string => `
# Users log in with ${title}. What to register there: the page /${page} of any gateway that runs (in a
# checkout: docs/${page}.md).
OAUTH_MODE=broker
${profile === undefined ? '' : `OIDC_PROVIDER=${profile}\n`}# ${issuerExample}
${write('OIDC_ISSUER', answers.issuer ?? issuer)}
${
  answers.audience === undefined && audienceExample === undefined
    ? ''
    : `# The audience of its tokens, for example ${audienceExample}\n${write('OIDC_AUDIENCE', answers.audience)}\n`
}${write('OAUTH_CLIENT_ID', answers.clientId)}
${write('OAUTH_CLIENT_SECRET', answers.clientSecret)}
${
  addedScopes === undefined
    ? ''
    : `${write('OAUTH_ADDED_SCOPES', answers.clientId && addedScopes(answers.clientId))}\n`
}
${SHARED_ADDRESS_LIMITS}`;

/** As in README.md and docs/deploy.md. The defaults are for one person behind an address. */
export const SHARED_ADDRESS_LIMITS = `# Many users may share one address, as in an office: calls are counted by user, and the limits by address have room for all.
MCP_USER_RATE_LIMIT_MAX=300
MCP_RATE_LIMIT_MAX=10000
DCR_RATE_LIMIT_MAX=200
# 300 people with 3 clients each, whose tokens may all expire within the same minute.
OAUTH_REFRESH_RATE_LIMIT_MAX=1000
`;

function renderSecrets(secrets: Readonly<Record<string, string>>): string {
  const lines = Object.entries(secrets).map(([name, value]) => `${write(name, value)}\n`);
  return lines.length === 0 ? '' : `\n# Secrets of the servers\n${lines.join('')}`;
}

/** @throws CommandError for a value that no line can have. */
function write(name: string, value = PLACEHOLDER): string {
  const line = renderEnvLine(name, value);
  if (line !== undefined) return line;
  throw new CommandError('Nothing was written:', [
    `${name}: .env cannot hold this value, which has quotation marks of every kind, or a carriage return. Set the variable elsewhere, and leave it out here.`,
  ]);
}
