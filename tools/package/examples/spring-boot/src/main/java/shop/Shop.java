package shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** An example application: the orders of a shop in Amazon Keyspaces. */
@SpringBootApplication
public class Shop {
  public static void main(String[] args) {
    SpringApplication.run(Shop.class, args);
  }
}
