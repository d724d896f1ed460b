// Prompts of `postern init` in a terminal. Answers given by flags are not prompted for.
import { existsSync } from 'node:fs';
import { type CANCEL_SYMBOL, confirm, isCancel, password, select, text } from '@clack/prompts';
import { CommandError } from '../command-line/errors.ts';
import {
  type CheckedAnswer,
  findInitProblem,
  type GivenAnswers,
  type InitAnswers,
} from './answers.ts';
import { DEV_PROVIDER, findProvider, PROVIDER_CHOICES } from './providers.ts';

/** @throws CommandError if the user cancels. */
export async function askForAnswers(given: GivenAnswers): Promise<InitAnswers> {
  const provider = given.provider ?? (await askForProvider());
  const login = provider === DEV_PROVIDER ? given : await askForLogin(provider, given);
  const content = await askForContent(given);
  const store = given.store ?? (given.redisUrl === undefined ? await askForStore() : 'redis');
  const redisUrl =
    store === 'redis' && given.redisUrl === undefined
      ? await askLater('Address of Redis', 'redis://localhost:6379', 'redisUrl')
      : given.redisUrl;
  const { baseUrl, issuer, clientId, clientSecret } = login;
  return { provider, baseUrl, issuer, clientId, clientSecret, ...content, store, redisUrl };
}

const askForProvider = async () =>
  requireAnswer(
    await select({
      message: 'Where do your users log in?',
      options: PROVIDER_CHOICES.map((value) => ({
        value,
        label: findProvider(value)?.title ?? 'Nowhere yet: a development provider, any name',
      })),
    }),
  );

type Login = Pick<GivenAnswers, 'baseUrl' | 'issuer' | 'clientId' | 'clientSecret'>;

async function askForLogin(choice: InitAnswers['provider'], given: Login) {
  const { issuer, issuerExample = '' } = findProvider(choice) ?? {};
  return {
    // Of the redirect URI, which is registered together with the client.
    baseUrl:
      given.baseUrl ?? (await askLater('Public address', 'https://mcp.example.com', 'baseUrl')),
    issuer: given.issuer ?? issuer ?? (await askLater('Issuer', issuerExample, 'issuer')),
    clientId:
      given.clientId ?? (await askLater('Client ID', 'the one you register there', 'clientId')),
    clientSecret:
      given.clientSecret ??
      (requireAnswer(await password({ message: 'Client secret (Enter to fill it in later)' })) ||
        undefined),
  };
}

/** Files of other programs with servers to import. */
const SERVER_FILES = ['mcp.json', '.mcp.json', '.cursor/mcp.json', '.vscode/mcp.json'];

async function askForContent(given: GivenAnswers) {
  if (given.tool !== undefined || given.servers !== undefined)
    return { tool: given.tool ?? false, servers: given.servers };
  const found = SERVER_FILES.find((file) => existsSync(file));
  const what = requireAnswer(
    await select({
      message: 'What should the gateway serve?',
      options: [
        { value: 'tool', label: 'Your own tools: a first one with its test' },
        { value: 'servers', label: 'Existing MCP servers' },
        { value: 'both', label: 'Both' },
      ],
    }),
  );
  const servers =
    what === 'tool'
      ? undefined
      : requireAnswer(
          await text({
            message: 'File with the mcpServers to import (Enter for none)',
            ...(found === undefined ? { placeholder: 'mcp.json' } : { initialValue: found }),
            validate: (file) => (!file || existsSync(file) ? undefined : 'There is no such file.'),
          }),
        ) || undefined;
  return { tool: what !== 'servers', servers };
}

const askForStore = async () =>
  requireAnswer(
    await select({
      message: 'Where does it keep sessions?',
      options: [
        { value: 'embedded', label: 'In a folder, for one process' },
        { value: 'redis', label: 'In Redis or Valkey, for several' },
      ],
    }),
  );

/** @throws CommandError if the user cancels. */
export const askToOverwrite = async (file: string): Promise<boolean> =>
  requireAnswer(
    await confirm({ message: `${file} exists already. Overwrite it?`, initialValue: false }),
  );

/** `checked`: an answer that must be valid unless it is left for later. */
async function askLater(what: string, placeholder: string, checked?: CheckedAnswer) {
  const message = `${what} (Enter to fill it in later)`;
  const validate = (answer: string | undefined) =>
    answer && checked ? findInitProblem(checked, answer) : undefined;
  return (
    requireAnswer(await text({ message, placeholder, defaultValue: '', validate })) || undefined
  );
}

function requireAnswer<Value>(answer: Value | typeof CANCEL_SYMBOL) {
  if (isCancel(answer)) throw new CommandError('Nothing was written:', 'You cancelled.');
  return answer;
}
