// `postern config`: what `postern start` would run with.
import { describeMisspelled, findMisspelledVariables } from '../../config/misspelled.ts';
import { escapeInvisible } from '../../platform/visible-json.ts';
import { prepareEnvironment } from '../command/env-file.ts';
import type { Invocation } from '../command/invocation.ts';
import { describeFile } from './describe-file.ts';
import { describeSettings } from './describe-settings.ts';
import { loadAsFarAsPossible } from './load-as-far-as-possible.ts';
import { type ConfigReport, renderReport } from './render-report.ts';

export interface ShowConfigOptions {
  /** Also settings that have their default. */
  readonly all: boolean;
  /** In place of POSTERN_CONFIG. */
  readonly config: string | undefined;
  /** Print JSON. */
  readonly json: boolean;
}

/** Exit code 1 where anything is wrong. */
export async function showConfig(
  { all, config: file, json }: ShowConfigOptions,
  { process, console }: Invocation,
): Promise<void> {
  const envFile = prepareEnvironment({ config: file }, process.env);
  const { config, problems } = loadAsFarAsPossible(process.env);
  const settings = describeSettings(process.env, {
    fromFile: envFile?.added ?? {},
    fromOptions: file === undefined ? {} : { POSTERN_CONFIG: '--config' },
    problems,
  });
  const report: ConfigReport = {
    settings:
      all || json
        ? settings
        : settings.filter(({ source, hasProblem }) => source !== 'default' || hasProblem),
    envFile: envFile?.path,
    file: config && (await describeFile(config, process.env)),
    problems,
    warnings:
      // Those of settings with problems name what was misspelled as well (load.ts).
      problems.length > 0 ? [] : findMisspelledVariables(process.env).map(describeMisspelled),
  };
  console.log(
    json ? escapeInvisible(JSON.stringify(report, undefined, 2)) : renderReport(report, { all }),
  );
  if (problems.length > 0 || (report.file?.problems.length ?? 0) > 0) process.exitCode = 1;
}
