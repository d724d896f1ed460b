// `postern init`: a folder with which `postern dev` starts.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { PACKAGE_ROOT } from '../../platform/own-files.ts';
import { UsageError } from '../command/errors.ts';
import type { Invocation } from '../command/invocation.ts';
import { readSecretOption } from '../command/secret-option.ts';
import { type Answers, completeAnswers, type GivenAnswers } from './answers.ts';
import { checkGivenAnswers } from './check-answers.ts';
import { describeImport } from './describe-import.ts';
import { CATALOG_FILE, CATALOG_TEST_FILE, CONFIG_FILE } from './file-names.ts';
import { renderGitIgnore } from './git-ignore.ts';
import { type ImportedServers, importServers, NO_SERVERS } from './import-servers.ts';
import { describeNextSteps } from './next-steps.ts';
import { renderConfig } from './render-config.ts';
import { renderEnv } from './render-env.ts';
import { type NewFile, writeFiles } from './write-files.ts';

export interface InitOptions extends GivenAnswers {
  /** Asks nothing. */
  readonly yes: boolean;
  /** Overwrites files. */
  readonly force: boolean;
  /** In place of `clientSecret`: a file that has it. */
  readonly clientSecretFile: string | undefined;
}

const SCHEMA_FILE = 'postern.schema.json';
const INSTALLED_SCHEMA = `node_modules/postern/${SCHEMA_FILE}`;

/** @throws UsageError, CommandError */
export async function init(
  { yes, force, clientSecretFile, ...options }: InitOptions,
  { process, console }: Invocation,
): Promise<void> {
  const isAsking = !yes && process.stdin.isTTY === true && process.stdout.isTTY === true;
  if (!yes && !isAsking) {
    throw new UsageError(
      'postern init asks questions, and there is no terminal. Add --yes for the defaults, with options for what differs.',
    );
  }
  const clientSecret = await readSecretOption(
    '--client-secret',
    { value: options.clientSecret, file: clientSecretFile },
    process,
  );
  const given: GivenAnswers = { ...options, clientSecret };
  checkGivenAnswers(given);
  const { askForAnswers, askToOverwrite } = await import('./ask.ts');
  const answers = isAsking ? await askForAnswers(given) : completeAnswers(given);
  const imported = answers.servers === undefined ? NO_SERVERS : importServers(answers.servers);
  const files = await planFiles(answers, imported);
  const written = await writeFiles(files, {
    force,
    ...(isAsking && { confirm: askToOverwrite }),
  });
  if (answers.servers !== undefined && imported.changes.length > 0)
    console.log(describeImport(answers.servers, imported.changes));
  const secretsFile = Object.keys(imported.secrets).length === 0 ? undefined : answers.servers;
  const result = { answers, written, secretsFile, isInstalled: isInstalled() };
  console.log(describeNextSteps(result, process));
}

const isInstalled = (): boolean => existsSync(INSTALLED_SCHEMA);

async function planFiles(
  answers: Answers,
  { servers, secrets }: ImportedServers,
): Promise<readonly NewFile[]> {
  const catalogFile = answers.tool ? CATALOG_FILE : undefined;
  const hasOwnTools = answers.tool || Object.keys(servers).length === 0;
  const secretsFile = Object.keys(secrets).length === 0 ? undefined : answers.servers;
  const schema = isInstalled() ? INSTALLED_SCHEMA : SCHEMA_FILE;
  return [
    { name: CONFIG_FILE, text: renderConfig({ schema: `./${schema}`, servers, hasOwnTools }) },
    {
      name: '.env',
      text: renderEnv(answers, { configFile: CONFIG_FILE, catalogFile, secrets }),
      isSecret: true,
    },
    ...(answers.tool
      ? [
          { name: CATALOG_FILE, text: await readOwn(`templates/${CATALOG_FILE}`) },
          { name: CATALOG_TEST_FILE, text: await readOwn(`templates/${CATALOG_TEST_FILE}`) },
        ]
      : []),
    ...(schema === SCHEMA_FILE ? [{ name: SCHEMA_FILE, text: await readOwn(SCHEMA_FILE) }] : []),
    // Somebody's own is left alone: the next steps say what it lacks.
    ...(existsSync('.gitignore')
      ? []
      : [{ name: '.gitignore', text: renderGitIgnore(secretsFile) }]),
  ];
}

const readOwn = (path: string): Promise<string> => readFile(new URL(path, PACKAGE_ROOT), 'utf8');
