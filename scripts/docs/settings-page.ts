import { SETTING_GROUPS, type SettingGroup } from '../../src/config/config.ts';
import type { Default, Setting } from '../../src/config/setting.ts';
import { renderTable } from './table.ts';

/** Set in most deployments, or in the first hour. */
const COMMON: readonly string[] = [
  'NODE_ENV',
  'BASE_URL',
  'PORT',
  'HOST',
  'TRUST_PROXY',
  'OAUTH_MODE',
  'OIDC_ISSUER',
  'OIDC_PROVIDER',
  'OAUTH_CLIENT_ID',
  'OAUTH_CLIENT_SECRET',
  'OAUTH_STATE_SECRET',
  'REDIS_URL',
  'DATA_DIR',
  'POSTERN_CONFIG',
  'POSTERN_CATALOG',
  'SERVICE_DISPLAY_NAME',
  'ADMIN_GROUPS',
  'AUDIT_LOG',
  'AUDIT_CLAIMS',
  'LOG_LEVEL',
  'METRICS_PORT',
  'MCP_RATE_LIMIT_MAX',
  'MCP_USER_RATE_LIMIT_MAX',
  'SHUTDOWN_DELAY_MS',
  'WORKERS',
];

/** @throws Error if a name is of no setting */
const commonSettings = (): readonly Setting<unknown>[] =>
  COMMON.map((name) => {
    const found = SETTING_GROUPS.flatMap(({ settings }) => settings).find(
      ({ variable }) => variable === name,
    );
    if (found === undefined) throw new Error(`${name} is not a setting.`);
    return found;
  });

/** `docs/settings.md`: the common settings, and each group folded: a short table, with details below it. */
export const settingsPage = (): string => `# Settings

Every setting is an environment variable. All are read once, at startup. An empty variable counts as unset.
If a value is invalid, the service does not start: it names every invalid variable, what was given and
what is allowed, and exits with code 1. It never prints the values of secrets.

To keep the variables in a file, copy \`.env.example\` to \`.env\` in the folder where you start Postern.
\`postern start\` and \`postern dev\` read it, and say which settings they took from it. Variables of the
environment win. Your own gateway ([createGateway](authors.md#your-own-gateway)) does not read the
file.

\`--port N\` wins over \`PORT\`. \`postern --help\` lists the other options.

When it is ready, \`postern start\` logs a line \`Listening.\` with the address (\`host\`, \`port\`, \`mcp\`), the
\`mode\` (\`OAUTH_MODE\`), the \`issuer\`, the \`store\` (the folder, or the host of Redis), the \`version\`, and
the version of Node.js (\`node\`).

## Common settings

Most deployments need no others. [Deploy](deploy.md) has them as a file to start from, and the groups below describe each in full.

${renderSettings(commonSettings())}
${SETTING_GROUPS.map(renderGroup).join('\n')}`;

export const envExample = (): string =>
  `# The settings of Postern; docs/settings.md describes them. Copy this file to .env and remove the # in
# front of what you set: postern start and postern dev read .env in the current folder.
${[{ title: 'Common settings', settings: commonSettings() }, ...otherSettings()]
  .map(({ title, settings }) => `\n\n# ${title}\n${settings.map(renderEnvEntry).join('')}`)
  .join('')}`;

/** The groups without the common settings, which precede them. */
const otherSettings = (): readonly Pick<SettingGroup, 'title' | 'settings'>[] =>
  SETTING_GROUPS.map(({ title, settings }) => ({
    title,
    settings: settings.filter(({ variable }) => !COMMON.includes(variable)),
  })).filter(({ settings }) => settings.length > 0);

const renderSettings = (settings: readonly Setting<unknown>[]): string =>
  renderTable(
    ['Setting', 'Default', 'What it is'],
    settings.map((setting) => [
      asCode(setting.variable),
      markVariables(renderShortDefault(setting.default)),
      markVariables(appendMode(setting, setting.summary)),
    ]),
  );

function renderGroup({ title, settings }: SettingGroup): string {
  const plain = settings.filter((setting) => listDetails(setting).length === 0);
  const rules = [...new Set(plain.map(({ rule }) => rule.allowed))].map((allowed) => {
    const names = plain.filter(({ rule }) => rule.allowed === allowed);
    return renderBullet(names, [`Allowed: ${allowed}.`]);
  });
  const described = settings.flatMap((setting) => {
    const sentences = listDetails(setting);
    return sentences.length === 0
      ? []
      : [renderBullet([setting], [...sentences, `Allowed: ${setting.rule.allowed}.`])];
  });
  const details = [...described, ...rules].join('');
  const first = settings.slice(0, 3).map(({ variable }) => `<code>${variable}</code>`);
  const summary = `${first.join(', ')}${settings.length > 3 ? ` and ${settings.length - 3} more` : ''}`;
  return `## ${title}\n\n<details>\n<summary>${summary}</summary>\n\n${renderSettings(settings)}\n${details}\n</details>\n`;
}

const renderBullet = (
  settings: readonly Setting<unknown>[],
  sentences: readonly string[],
): string =>
  `- ${settings.map(({ variable }) => asCode(variable)).join(', ')}: ${markVariables(sentences.join(' '))}\n`;

/** The details that do not fit into the table, as sentences of Markdown. */
function listDetails({ details, default: fallback }: Setting<unknown>): readonly string[] {
  const exceptions = describeExceptions(fallback);
  return [
    ...(details === undefined ? [] : [details]),
    ...(exceptions.length === 0 || isShort(exceptions)
      ? []
      : [`The default is ${renderDefault(fallback)}; ${exceptions.join('; ')}.`]),
  ];
}

const appendMode = ({ mode }: Setting<unknown>, sentence: string): string =>
  mode === undefined ? sentence : `${sentence} (OAUTH_MODE=${mode} only)`;

function renderShortDefault(fallback: Default<unknown>): string {
  const exceptions = describeExceptions(fallback);
  if (exceptions.length === 0) return renderDefault(fallback);
  return isShort(exceptions)
    ? [renderDefault(fallback), ...exceptions].filter((text) => text !== '').join(', ')
    : `${renderDefault(fallback)}, varies`;
}

const renderDefault = (fallback: Default<unknown>): string =>
  'compute' in fallback ? fallback.text : asCode(writeValue(fallback));

const writeValue = ({ value, text = String(value) }: { value: unknown; text?: string }): string =>
  text;

const describeExceptions = (fallback: Default<unknown>): readonly string[] =>
  'compute' in fallback ? (fallback.exceptions ?? []).map(([text, when]) => `${text} ${when}`) : [];

const isShort = (exceptions: readonly string[]): boolean => exceptions.join(', ').length < 40;

const asCode = (text: string): string => (text === '' ? '' : `\`${text}\``);

/** Variables, with their value or without, as code where they are not. */
const markVariables = (markdown: string): string =>
  markdown.replace(/`[^`]*`|\]\([^)]*\)|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+(=[\w*]+)?/g, (text) =>
    /^[`\]]/.test(text) ? text : asCode(text),
  );

function renderEnvEntry(setting: Setting<unknown>): string {
  const { variable, rule, summary, details = '', default: fallback } = setting;
  const isComputed = 'compute' in fallback;
  const told = isComputed
    ? `Default: ${[fallback.text, ...describeExceptions(fallback)].filter((one) => one !== '').join('; ')}.`
    : '';
  const text = [appendMode(setting, summary), details, told, `Allowed: ${rule.allowed}.`]
    .filter((sentence) => sentence !== '')
    .join(' ');
  const lines = wrapLines(toPlainText(text)).map((line) => `# ${line}\n`);
  return `\n${lines.join('')}#${variable}=${isComputed ? '' : writeValue(fallback)}\n`;
}

const toPlainText = (markdown: string): string =>
  markdown.replaceAll('`', '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');

const wrapLines = (text: string): readonly string[] => text.match(/\S.{0,95}(?=\s|$)/g) ?? [];
