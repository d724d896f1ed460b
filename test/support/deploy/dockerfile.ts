// The Dockerfile as data: its stages, and what each does in turn.
import { readFile } from 'node:fs/promises';
import { DockerfileParser, From, type Instruction, JSONInstruction } from 'dockerfile-ast';

export interface Stage {
  /** An earlier stage, or an image. */
  readonly from: string;
  readonly name: string | undefined;
  readonly steps: readonly Step[];
}

export interface Step {
  /** Such as RUN. */
  readonly keyword: string;
  /** What follows the keyword: as it stands, and its words, or the strings of its JSON. */
  readonly text: string;
  readonly words: readonly string[];
  /** Such as `from` of COPY. */
  readonly flags: Readonly<Record<string, string>>;
}

export const readDockerfile = (): Promise<string> =>
  readFile(new URL('../../../Dockerfile', import.meta.url), 'utf8');

export async function readStages(): Promise<readonly Stage[]> {
  const stages: (Stage & { readonly steps: Step[] })[] = [];
  for (const instruction of DockerfileParser.parse(await readDockerfile()).getInstructions()) {
    if (instruction instanceof From) {
      const name = instruction.getBuildStage() ?? undefined;
      stages.push({ from: instruction.getImage() ?? '', name, steps: [] });
    } else {
      stages.at(-1)?.steps.push(toStep(instruction));
    }
  }
  return stages;
}

function toStep(instruction: Instruction): Step {
  const isJson = instruction instanceof JSONInstruction;
  const flags = isJson ? instruction.getFlags() : [];
  const strings = isJson ? instruction.getJSONStrings().map((word) => word.getJSONValue()) : [];
  return {
    keyword: instruction.getKeyword(),
    text: instruction.getRawArgumentsContent() ?? '',
    words:
      strings.length > 0
        ? strings
        : instruction.getArguments().map((argument) => argument.getValue()),
    flags: Object.fromEntries(flags.map((flag) => [flag.getName(), flag.getValue() ?? ''])),
  };
}
