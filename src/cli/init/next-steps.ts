// What `postern init` says at its end: what works when it is typed here.
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isObject, parseObject } from '../../platform/json.ts';
import { PACKAGE_NAME, PACKAGE_ROOT } from '../../platform/own-files.ts';
import { describeCommand, isRunByNpx, SOURCE_FOLDER, type TypedAs } from '../command/invocation.ts';
import { readIfPresent } from '../command/texts.ts';
import type { InitAnswers } from './answers.ts';
import { findProvider } from './providers.ts';
import { CATALOG_FILE, CONFIG_FILE, toPattern } from './render-files.ts';

interface InitResult {
  readonly answers: InitAnswers;
  /** Names of files. */
  readonly written: readonly string[];
  /** The file from which secrets were copied, as it was named. */
  readonly secretsFile: string | undefined;
  /** Whether the package lies in node_modules of this folder. */
  readonly isInstalled: boolean;
}

export function describeNextSteps(
  { answers, written, secretsFile, isInstalled }: InitResult,
  typed: TypedAs,
): string {
  const { provider: choice, tool } = answers;
  const provider = findProvider(choice);
  // The test imports it, and npx would look for it in the registry.
  const isToInstall = !isInstalled && (tool || isRunByNpx(typed.env));
  const manifest = readManifest('package.json');
  const scripts = manifest?.scripts;
  const describe = (command: string): string => {
    if (isObject(scripts) && command in scripts) return `npm run ${command}`;
    return isInstalled || isToInstall
      ? `npx postern ${command}`
      : describeCommand([command], typed);
  };
  // Without one, npm would install into a project further up.
  const prepare = manifest === undefined ? 'npm init -y && ' : '';
  // A .env that the user has kept names no files.
  const options = written.includes('.env')
    ? []
    : [...(tool ? [`--catalog ${CATALOG_FILE}`] : []), `--config ${CONFIG_FILE}`];
  const missing = listPlaceholders();
  const install = `${prepare}npm install ${findPackage()}`;
  const test = isObject(scripts) && scripts.test ? 'npm test' : 'node --test';
  const start = [describe('dev'), ...options].join(' ');
  const steps = [
    provider && ['', `Register a client at ${provider.title}, with the redirect URI`],
    provider && ['', 'http://localhost:3000/oauth/callback'],
    missing.length > 0 && ['', `Fill in .env: ${missing.join(', ')}`],
    isToInstall && [install, 'Postern itself, for the test and your editor'],
    provider && [describe('doctor'), 'says whether provider and settings fit together'],
    tool && [test, 'calls your first tool'],
    [start, 'starts the gateway, and says how to connect a client'],
  ].filter((step) => step !== false && step !== undefined);
  return [
    `Wrote ${written.join(', ') || 'nothing'}.`,
    ...(isEnvIgnored() ? [] : ['', 'Add .env to .gitignore: there are secrets in it.']),
    ...(secretsFile === undefined ? [] : ['', describeSecretsFile(secretsFile)]),
    '',
    'Next:',
    ...renderSteps(steps),
  ].join('\n');
}

/** Explained beside it, or below it where that would be far to the right. */
const WIDE = 40;

function renderSteps(steps: readonly (readonly string[])[]): readonly string[] {
  const lengths = steps.map(([typed = '']) => typed.length);
  const width = Math.max(0, ...lengths.filter((length) => length <= WIDE));
  return steps.flatMap(([typed = '', does = '']) => {
    if (typed === '') return [`  ${does}`];
    const command = styleText('bold', typed.padEnd(width));
    return typed.length > WIDE ? [`  ${command}`, `      ${does}`] : [`  ${command}  ${does}`];
  });
}

/** What `npm install` takes: the checkout or the file from which this process came, or the registry's package. */
function findPackage(): string {
  const root = fileURLToPath(PACKAGE_ROOT);
  if (SOURCE_FOLDER !== undefined) return relative(process.cwd(), root);
  // Of npx, or of the project in which it was installed.
  const project = resolve(root, '..', '..');
  const dependencies = readManifest(resolve(project, 'package.json'))?.dependencies;
  const spec = isObject(dependencies) ? dependencies[PACKAGE_NAME] : undefined;
  return typeof spec === 'string' && spec.startsWith('file:')
    ? relative(process.cwd(), resolve(project, spec.slice('file:'.length)))
    : PACKAGE_NAME;
}

/** Undefined where there is none. */
const readManifest = (path: string) => parseObject(readIfPresent(path));

const isEnvIgnored = (): boolean =>
  /^\/?(\.env|\.env\*|\*\.env|\.\*)$/m.test(readIfPresent('.gitignore'));

function describeSecretsFile(file: string): string {
  const pattern = toPattern(file);
  const isIgnored =
    pattern !== undefined && readIfPresent('.gitignore').split('\n').includes(pattern);
  const shown = escapeInvisible(file.replaceAll('\n', '\\n'));
  return isIgnored
    ? `${shown} still holds the secrets: delete it. Until then, .gitignore keeps it out of Git.`
    : `${shown} still holds the secrets: delete it, or keep it out of Git.`;
}

/** The settings in `.env` that have a placeholder for their value. */
const listPlaceholders = (): readonly string[] =>
  [...readIfPresent('.env').matchAll(/^(\w+)=…$/gm)].map(([, name = '']) => name);
