export interface Basket { articles: string[] }

export const renderBasket = (basket: Basket): string => basket.articles.join(", ");

export function checkout(basket: Basket): void { console.log(renderBasket(basket)); }
