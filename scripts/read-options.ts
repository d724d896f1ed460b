import { type ParseArgsConfig, parseArgs } from 'node:util';

/**
 * The command line of a script. `--help` prints `usage` and ends with exit code 0; an unknown option ends it
 * with exit code 2, before anything is started.
 */
export function readOptions<const Config extends ParseArgsConfig>(
  usage: string,
  config: Config,
): ReturnType<typeof parseArgs<Config>> {
  if (process.argv.slice(2).some((arg) => arg === '--help' || arg === '-h')) {
    console.log(usage);
    process.exit(0);
  }
  try {
    return parseArgs(config);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    // Node adds what to do with arguments that look like options, which none of the scripts takes.
    const [sentence = ''] = error.message.split('. ');
    console.error(`${sentence.replace(/\.$/, '')}.\n\n${usage}`);
    process.exit(2);
  }
}
