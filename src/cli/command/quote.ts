/** One word for bash and zsh, whatever stands in it. */
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
