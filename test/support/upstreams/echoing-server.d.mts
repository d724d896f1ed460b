export function answer(text: string, era?: 'session' | 'stateless'): string | undefined;
