import type { Setting } from '../../src/core/config/setting.ts';
import { SETTING_GROUPS } from '../../src/core/config/settings.ts';
import { renderTable } from './table.ts';

export const settingsPage = (): string => `# Settings

Every setting is an environment variable. All are read once, at start; an empty one counts as not
set. When a value is wrong the service does not start: it names every wrong variable, what was
given and what is allowed, and exits with code 1. Values of secrets are never printed.

To keep the variables in a file, copy \`.env.example\` to \`.env\` in the folder in which you start
Postern. \`postern start\` and \`postern dev\` read it, and say in the log, or in their first lines,
which settings they took from it. A variable of the environment wins. A gateway of your own
([createGateway](authors.md#a-gateway-of-your-own)) does not read the file.

\`--port N\` wins over \`PORT\`. \`postern --help\` lists the other options.

Once it serves, \`postern start\` prints a line \`Listening.\` at \`info\`. It has the address (\`host\`,
\`port\`, \`mcp\`), the \`mode\` (\`OAUTH_MODE\`), the \`issuer\`, the \`store\` (the folder, or the host of
Redis), the \`version\` and the version of Node.js (\`node\`).

${settingsTables('##')}`;

/** One table for each chapter, under headings of the given level. */
export const settingsTables = (level: '##' | '###'): string =>
  SETTING_GROUPS.map(({ title, settings }) => {
    const rows = settings.map(({ variable, default: { text }, rule, help }) => [
      `\`${variable}\``,
      // Some defaults are sentences.
      text === '' || text.includes(' ') ? text : `\`${text}\``,
      help,
      rule.allowed,
    ]);
    return `${level} ${title}\n\n${renderTable(['Variable', 'Default', 'Meaning', 'Allowed'], rows)}`;
  }).join('\n');

export const envExample = (): string =>
  `# Settings of Postern; docs/settings.md has them as a table. Copy this file to .env, and take the #
# away from what you set: postern start and postern dev read it from the current folder.
${SETTING_GROUPS.map(({ title, settings }) => `\n\n# ${title}\n${settings.map(envEntry).join('')}`).join('')}`;

function envEntry({ variable, rule, default: { text, isValue }, help }: Setting<unknown>): string {
  // Some defaults are sentences ("BASE_URL, …"): those are told, not set.
  const told = isValue || text === '' ? '' : ` Default: ${text}.`;
  const lines = wrap(`${help}${told} Allowed: ${rule.allowed}.`);
  return `\n${lines.map((line) => `# ${line}\n`).join('')}#${variable}=${isValue ? text : ''}\n`;
}

const wrap = (text: string): readonly string[] => text.match(/\S.{0,95}(?=\s|$)/g) ?? [];
