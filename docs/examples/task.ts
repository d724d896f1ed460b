import { defineTool, elicit } from 'postern/define';

export const buildReport = defineTool({
  name: 'build_report',
  description: 'Builds the report of a quarter. Takes some minutes.',
  inputSchema: {
    type: 'object',
    properties: { quarter: { type: 'string' } },
    required: ['quarter'],
    additionalProperties: false,
  },
  task: 'optional',
  // Asked before the task begins. What it returns is the third argument of run.
  async prepare({ quarter }, { ask }) {
    const { form } = await ask({
      form: elicit(`In which language do you want the report of ${quarter}?`, {
        type: 'object',
        properties: { language: { type: 'string', enum: ['English', 'German'] } },
        required: ['language'],
      } as const),
    });
    return form.action === 'accept' ? form.content.language : 'English';
  },
  async run({ quarter }, { progress, signal }, language) {
    const chapters = ['Sales', 'Costs', 'Outlook'];
    for (const [done, chapter] of chapters.entries()) {
      progress(done, chapters.length, `Writing ${chapter}`);
      await writeChapter(chapter, signal);
    }
    return { content: [{ type: 'text', text: `The report of ${quarter}, in ${language}.` }] };
  },
});

/** Stands for the work. */
async function writeChapter(_chapter: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
}
